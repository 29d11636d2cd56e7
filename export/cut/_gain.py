"""Decides whether a domain's stage pays, given that its states are gathered for each candidate.

Gathering a state costs about as much as looking up an embedding. So a stage must save a product
with weights, or its states must be no larger than the columns they replace; and it must do more
than read its columns.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import tensorflow as tf
from colcast.export.cut._stages_report import State
from colcast.export.graph._colours import Colours
from colcast.export.graph._flat_graph import FlatGraph
from colcast.export.graph._nodes import ancestors

_LENGTH = 64  # the assumed size of an unknown dimension, a list
_STRING = 24  # bytes of a short string in TensorFlow
_READING = {
    "Cast", "ConcatV2", "EnsureShape", "ExpandDims", "Identity", "IdentityN", "Pack", "Placeholder",
    "Reshape", "Shape", "Slice", "Snapshot", "Squeeze", "StopGradient", "StridedSlice", "Transpose",
}  # fmt: skip
_PRODUCTS = {
    "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Einsum", "MatMul",
    "SparseTensorDenseMatMul",
}  # fmt: skip


def row_bytes(states: Iterable[State]) -> int:
    """The bytes of one row's states."""
    return sum(_bytes(tf.as_dtype(state.dtype), state.shape[1:]) for state in states)


def why_no_gain(
    graph: FlatGraph, colours: Colours, states: Sequence[State], columns: Iterable[tf.Tensor]
) -> str:
    """Why a domain gets no stage; "" if its stage pays.

    Args:
        graph: the late graph's nodes.
        colours: the nodes' colours.
        states: the domain's states.
        columns: the domain's placeholders.
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
    """The types of one domain's ops from which tensors are computed."""
    others = {name for name, of in colours.of.items() if of != colours[tensors[0]]}
    own = ancestors(graph.nodes, tensors, stop=others, controls=False)
    return {graph.nodes[name].op for name in own}


def _bytes(dtype: tf.DType, shape: Sequence[int | None]) -> int:
    size = _STRING if dtype == tf.string else np.dtype(dtype.as_numpy_dtype).itemsize
    return size * math.prod(_LENGTH if each is None else each for each in shape)
