"""Finds products that TensorFlow fuses with their bias and Relu. The fused op turns NaN into 0.

For several users, a split product is not fused, and its separate Relu would pass NaN on. So such a
product is split only if its inputs were finite in trials; the graph checks that its terms are.

TensorFlow first replaces a Concat of nothing but Relus by a Relu of a Concat, which it does not
fuse, unless a BiasAdd adds the bias. A copy may concatenate other tensors, so it must not depend on
that.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf
from colcast.export.graph._comparison import all_finite
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import FlatGraph, NodeDef, data_inputs, producer
from colcast.export.graph._probe import Probe
from colcast.export.graph._sessions import Array, Columns
from colcast.export.graph._signature import Signature

_RELUS = ("Relu", "Relu6")
_BIASES = ("Add", "AddV2", "BiasAdd")
_NOT_MOVED_FROM = {"BiasAdd", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}
# Ops that TensorFlow removes before it fuses others.
_REMOVED = ("Identity", "PreventGradient", "Snapshot", "StopGradient")


@dataclass(frozen=True)
class Fused:
    """The products whose outputs a Relu reads.

    Attributes:
        read: for each MatMul with a bias, its first input.
        biases: the nodes that add the biases.
        alone: nodes that a Relu reads but that are not fused with it: MatMuls without a bias, and
            sums whose addend is not a bias.
        moved: Relus that TensorFlow does not fuse because it moves them behind a Concat.
        may_move: nodes of `biases` whose Relu TensorFlow might move in a copy, but not if BiasAdd
            added the bias.
        not_finite: MatMuls of `read` that read NaN or infinity in a trial row whose scores were
            finite. Requests may contain such rows.
    """

    read: Mapping[str, str] = field(default_factory=dict)
    biases: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()
    may_move: frozenset[str] = frozenset()
    not_finite: frozenset[str] = frozenset()


def find_fused(
    graph: FlatGraph, session: tf.compat.v1.Session, signature: Signature
) -> Callable[[Sequence[Columns], Probe | None], Fused]:
    """Finds the products that TensorFlow fuses.

    Returns:
        A function that runs the columnar signature on batches to see which products read NaN or
        infinity. It takes the batches and, if there is one, a probe of the inner tensors.
    """
    read, biases, alone, may_move = {}, set[str](), set[str](), set[str]()
    moved, concatenated = _concatenated_relus(graph, signature)
    find = session.graph.get_tensor_by_name
    for relu in graph.nodes.values():
        if relu.op not in _RELUS:
            continue
        node = _behind(graph, data_inputs(relu)[0])
        if node.op in ("MatMul", "AddN", *_BIASES):
            alone.add(node.name)
        sources = data_inputs(node) if node.op in _BIASES else []
        for source, other in zip(sources, sources[::-1], strict=True):
            product = _behind(graph, source)
            is_bias = product.op == "MatMul" and _is_bias(find(other).shape, find(source).shape)
            if is_bias and relu.name not in moved:
                read[product.name] = data_inputs(product)[0]
                biases.add(node.name)
                bias, units = find(other).shape, find(source).shape[-1:]
                if relu.name in concatenated and bias.is_fully_defined() and bias == units:
                    may_move.add(node.name)
    tensors = sorted({t for t in read.values() if session.graph.is_fetchable(find(t))})
    outputs = sorted(signature.outputs.values())
    fetched = {tensor: tensor for tensor in [*tensors, *outputs]}
    probe = Probe(session, signature.inputs, fetched, inner=True) if tensors else None

    def fused(batches: Sequence[Columns], whole: Probe | None) -> Fused:
        # Where all tensors are finite, fusing changes none, so `probe` need not be prepared.
        finite = whole and set(tensors) <= set(whole.names) and _all_finite(whole, batches)
        seen = _not_finite(probe, tensors, outputs, batches) if probe and not finite else set[str]()
        not_finite = frozenset(name for name, tensor in read.items() if tensor in seen)
        unfused = frozenset(alone - biases)
        apart = frozenset(moved), frozenset(may_move)
        return Fused(read, frozenset(biases), unfused, *apart, not_finite)

    return fused


def _concatenated_relus(graph: FlatGraph, signature: Signature) -> tuple[set[str], set[str]]:
    """The Relus that TensorFlow moves behind a Concat, and all Relus that a Concat reads."""
    concats = {node.name: _concatenated(node) for node in graph.nodes.values()}
    # TensorFlow first merges equal Concats; their axes are hardly ever different.
    once = {tensors: name for name, tensors in concats.items() if tensors}
    readers = Counter(producer(tensor) for tensor in signature.outputs.values())
    for node in graph.nodes.values():
        if once.get(concats[node.name], node.name) == node.name:
            readers.update({producer(source.removeprefix("^")) for source in node.input})
    moved, concatenated = set[str](), set[str]()
    for tensors in once:
        inputs = [_behind(graph, tensor) for tensor in tensors]
        relus = [node for node in inputs if node.op in _RELUS]
        concatenated |= {relu.name for relu in relus}
        ops = {node.op for node in inputs}
        alike = len(ops) == 1 and len(inputs) == len({node.name for node in inputs}) > 1
        before = {graph.nodes[producer(data_inputs(relu)[0])].op for relu in relus}
        if relus and alike and before.isdisjoint(_NOT_MOVED_FROM):
            moved |= {relu.name for relu in relus if all(readers[n.name] == 1 for n in inputs)}
    return moved, concatenated


def _concatenated(node: NodeDef) -> tuple[str, ...]:
    tensors = tuple(data_inputs(node))
    return {"Concat": tensors[1:], "ConcatV2": tensors[:-1]}.get(node.op, ())


def _is_bias(shape: tf.TensorShape, of: tf.TensorShape) -> bool:
    """Whether a static shape fits a bias of a product with shape `of`: one entry per unit."""
    if not shape.rank or any(size != 1 for size in shape[:-1]):
        return False
    return bool(shape[-1:].is_compatible_with(of[-1:]))


def _behind(graph: FlatGraph, tensor: str) -> NodeDef:
    node = graph.nodes[producer(tensor)]
    while node.op in _REMOVED:
        node = graph.nodes[producer(data_inputs(node)[0])]
    return node


def _all_finite(probe: Probe, batches: Iterable[Columns]) -> bool:
    try:
        return all(all_finite(*probe(columns).values()) for columns in batches)
    except ExportError:
        return False


def _not_finite(
    probe: Probe, tensors: Sequence[str], outputs: Sequence[str], batches: Iterable[Columns]
) -> set[str]:
    found = set[str]()
    for columns in batches:
        try:
            values = probe(columns)
        except ExportError:  # the model refuses these rows as one request
            continue
        rows = len(next(iter(columns.values())))
        scored = np.all([_finite_rows(values[output], rows) for output in outputs], axis=0)
        found |= {t for t in tensors if np.any(scored & ~_finite_rows(values[t], rows))}
    return found


def _finite_rows(value: Array, rows: int) -> Array:
    """Whether each row's entries are finite; of a tensor without rows, whether all entries are."""
    if value.dtype.kind not in "fc":
        return np.ones(rows, bool)
    finite = np.isfinite(value)
    if value.ndim and len(value) and len(value) % rows == 0:
        return np.asarray(finite.reshape(rows, -1).all(1))
    return np.full(rows, finite.all())
