"""Finds products that TensorFlow fuses with their bias and Relu. The fused op turns NaN into 0.

For several users, a split product is not fused, and its separate Relu would pass NaN on. So such a
product is split only if its inputs were finite in trials; the graph checks that its terms are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf
from colcast.export.graph._comparison import all_finite
from colcast.export.graph._errors import ExportError
from colcast.export.graph._findings import Probe
from colcast.export.graph._nodes import FlatGraph, NodeDef, data_inputs, producer
from colcast.export.graph._requests import Array, Columns
from colcast.export.graph._signature import Signature

_RELUS = ("Relu", "Relu6")
_BIASES = ("Add", "AddV2", "BiasAdd")
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
        not_finite: MatMuls of `read` that read NaN or infinity in a trial row whose scores were
            finite. Requests may contain such rows.
    """

    read: Mapping[str, str] = field(default_factory=dict)
    biases: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()
    not_finite: frozenset[str] = frozenset()


def find_fused(
    graph: FlatGraph, session: tf.compat.v1.Session, signature: Signature
) -> Callable[[Sequence[Columns], Probe | None], Fused]:
    """Finds the products that TensorFlow fuses.

    Returns:
        A function that runs the columnar signature on batches to see which products read NaN or
        infinity. It takes the batches and, if there is one, a probe of the inner tensors.
    """
    read, biases, alone = {}, set[str](), set[str]()
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
            if product.op == "MatMul" and _is_bias(find(other).shape, find(source).shape):
                read[product.name] = data_inputs(product)[0]
                biases.add(node.name)
    tensors = sorted({t for t in read.values() if session.graph.is_fetchable(find(t))})
    outputs = sorted(signature.outputs.values())
    fetched = {tensor: tensor for tensor in [*tensors, *outputs]}
    probe = Probe(session, signature.inputs, fetched, inner=True) if tensors else None

    def fused(batches: Sequence[Columns], whole: Probe | None) -> Fused:
        # Where all tensors are finite, fusing changes none, so `probe` need not be prepared.
        finite = whole and set(tensors) <= set(whole.names) and _all_finite(whole, batches)
        seen = _not_finite(probe, tensors, outputs, batches) if probe and not finite else set[str]()
        not_finite = frozenset(name for name, tensor in read.items() if tensor in seen)
        return Fused(read, frozenset(biases), frozenset(alone - biases), not_finite)

    return fused


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
