"""Finds products that TensorFlow fuses with their bias and Relu, which makes them turn NaN into 0.

A separate Relu passes NaN on. So a split product, whose sum a separate Relu reads, would keep a NaN
that the model makes 0. Such a product is split only if its rows are finite.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf
from colcast.export.graph._errors import ExportError
from colcast.export.graph._findings import Probe
from colcast.export.graph._nodes import FlatGraph, NodeDef, data_inputs, producer
from colcast.export.graph._requests import Array, Columns
from colcast.export.graph._signature import Signature

_RELUS = ("Relu", "Relu6")
_BIASES = ("Add", "AddV2", "BiasAdd")
# Removed before TensorFlow fuses.
_REMOVED = ("Identity", "PreventGradient", "Snapshot", "StopGradient")


@dataclass(frozen=True)
class Fused:
    """The products that a Relu follows.

    Attributes:
        read: for each MatMul with a bias, the tensor that it multiplies.
        biases: the nodes that add the biases.
        alone: MatMuls without a bias, and sums read by a Relu, which are not fused.
        not_finite: the MatMuls of `read` that had NaN or infinity in a trial row which the model
            still scored finitely: requests may have such rows.
    """

    read: Mapping[str, str] = field(default_factory=dict)
    biases: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()
    not_finite: frozenset[str] = frozenset()


def find_fused(
    graph: FlatGraph,
    session: tf.compat.v1.Session,
    signature: Signature,
    batches: Iterable[Columns],
) -> Fused:
    """Finds them, and runs a columnar signature to see which read values that are not finite."""
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
    tensors = {t for t in read.values() if session.graph.is_fetchable(find(t))}
    seen = _not_finite(session, signature, tensors, batches) if tensors else set[str]()
    not_finite = frozenset(name for name, tensor in read.items() if tensor in seen)
    return Fused(read, frozenset(biases), frozenset(alone - biases), not_finite)


def _is_bias(shape: tf.TensorShape, of: tf.TensorShape) -> bool:
    """Whether a tensor has one entry per unit and no rows, as far as shapes tell."""
    if not shape.rank or any(size != 1 for size in shape[:-1]):
        return False
    return bool(shape[-1:].is_compatible_with(of[-1:]))


def _behind(graph: FlatGraph, tensor: str) -> NodeDef:
    node = graph.nodes[producer(tensor)]
    while node.op in _REMOVED:
        node = graph.nodes[producer(data_inputs(node)[0])]
    return node


def _not_finite(
    session: tf.compat.v1.Session,
    signature: Signature,
    tensors: Iterable[str],
    batches: Iterable[Columns],
) -> set[str]:
    found = set[str]()
    outputs = sorted(signature.outputs.values())
    fetched = {tensor: tensor for tensor in [*sorted(tensors), *outputs]}
    probe = Probe(session, signature.inputs, fetched, inner=True)
    for columns in batches:
        try:
            values = probe(columns)
        except ExportError:  # the model refuses these rows together
            continue
        rows = len(next(iter(columns.values())))
        scored = np.all([_finite_rows(values[output], rows) for output in outputs], axis=0)
        found |= {t for t in tensors if np.any(scored & ~_finite_rows(values[t], rows))}
    return found


def _finite_rows(value: Array, rows: int) -> Array:
    """Marks rows with finite entries only; if the number of rows differs, marks all rows alike."""
    if value.dtype.kind not in "fc":
        return np.ones(rows, bool)
    finite = np.isfinite(value)
    if value.ndim and len(value) and len(value) % rows == 0:
        return np.asarray(finite.reshape(rows, -1).all(1))
    return np.full(rows, finite.all())
