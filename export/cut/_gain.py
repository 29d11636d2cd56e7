"""Whether a domain's stage gains anything, as its states are gathered for each candidate anyway.

Gathering a state costs about what looking an embedding up does. So a stage has to save a product
with weights, or its states have to be no larger than the columns they replace, and it has to
do more than read its columns.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import tensorflow as tf
from colcast.export.cut._stages_report import State
from colcast.export.graph._colours import Colours
from colcast.export.graph._flat_graph import FlatGraph
from colcast.export.graph._nodes import ancestors

_LENGTH = 64  # what an open dimension, a list, is counted as
_STRING = 24  # bytes of one that is short, in TensorFlow
_READING = {
    "Cast", "ConcatV2", "EnsureShape", "ExpandDims", "Identity", "IdentityN", "Pack", "Placeholder",
    "Reshape", "Shape", "Slice", "Snapshot", "Squeeze", "StopGradient", "StridedSlice", "Transpose",
}  # fmt: skip
_PRODUCTS = {
    "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Einsum", "MatMul",
    "SparseTensorDenseMatMul",
}  # fmt: skip


def row_bytes(states: Iterable[State]) -> int:
    """What the states of one row take."""
    return sum(_bytes(tf.as_dtype(state.dtype), state.shape[1:]) for state in states)


def why_no_gain(
    graph: FlatGraph, colours: Colours, states: Sequence[State], columns: Iterable[tf.Tensor]
) -> str:
    """Why a domain is left to the candidates; "" if its stage gains something.

    Args:
        graph: the late graph's nodes.
        colours: of each.
        states: the domain's.
        columns: its placeholders.
    """
    if not states:
        return "no output depends on its features"
    ops = _ops(graph, colours, [state.tensor for state in states])
    if ops <= _READING:
        return "its ops only read its columns"
    given = sum(_bytes(column.dtype, column.shape[1:].as_list()) for column in columns)
    kept = row_bytes(states)
    if kept > given and ops.isdisjoint(_PRODUCTS):
        return f"its states take {kept:,} bytes per row, its columns {given:,}, and save no product"
    return ""


def _ops(graph: FlatGraph, colours: Colours, tensors: Sequence[str]) -> set[str]:
    """The types of ops of one domain that tensors are computed with."""
    others = {name for name, of in colours.of.items() if of != colours[tensors[0]]}
    own = ancestors(graph.nodes, tensors, stop=others, controls=False)
    return {graph.nodes[name].op for name in own}


def _bytes(dtype: tf.DType, shape: Sequence[int | None]) -> int:
    size = _STRING if dtype == tf.string else np.dtype(dtype.as_numpy_dtype).itemsize
    return size * math.prod(_LENGTH if each is None else each for each in shape)
