"""Reads ParseExample and ParseExampleV2 nodes: the features and the resulting tensors."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.convert._features import Feature, Kind
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import (
    LIST_ROLE,
    Nodes,
    canonical,
    constants,
    data_inputs,
    scope_name,
)
from tensorflow.core.framework.attr_value_pb2 import AttrValue

PARSE_OPS = ("ParseExample", "ParseExampleV2")


@dataclasses.dataclass(frozen=True)
class ParsedFeature:
    """A feature and the output tensors of the parse op that hold it.

    Attributes:
      feature: the parsed feature.
      tensors: FIXED_LEN, FIXED_LEN_SEQUENCE: (dense,); VAR_LEN: (indices, values, dense shape);
        RAGGED: (values, row splits).
    """

    feature: Feature
    tensors: tuple[str, ...]


def read_parse_op(node: Any, nodes: Nodes, versions: Any) -> list[ParsedFeature]:
    """Returns the features of a parse node in its order: sparse, dense, then ragged.

    Args:
      node: the NodeDef.
      nodes: the flat graph that contains it.
      versions: the VersionDef of that graph.

    Raises:
      ExportError: keys or defaults are not constants, or a key is not UTF-8.
    """
    try:
        values = constants(nodes, data_inputs(node)[2:], versions)
    except ExportError as error:
        raise ExportError(f"keys and defaults of parse op {node.name!r}: {error}") from error
    if node.op == "ParseExampleV2":
        keys, defaults = values[:3], values[3:]
    else:
        sparse, dense = node.attr["Nsparse"].i, node.attr["Ndense"].i
        keys, defaults = [values[:sparse], values[sparse:][:dense], []], values[sparse + dense :]
    of_sparse, of_dense, of_ragged = (_texts(node, each) for each in keys)
    features = [
        *_sparse(node, of_sparse),
        *_dense(node, of_dense, defaults),
        *_ragged(node, of_ragged),
    ]
    return [
        ParsedFeature(feature, parsed)
        for feature, parsed in zip(features, _outputs(node), strict=True)
    ]


def _texts(node: Any, keys: Any) -> list[str]:
    texts = []
    for key in keys:
        try:
            texts.append(bytes(key).decode())
        except UnicodeDecodeError as error:
            raise ExportError(
                f"feature {bytes(key)!r} of parse op {node.name!r} is not valid UTF-8, which names"
                " in a signature must be; rename it in the model"
            ) from error
    return texts


def _dtypes(node: Any, attribute: str) -> list[str]:
    return [tf.dtypes.as_dtype(dtype).name for dtype in node.attr[attribute].list.type]


def _outputs(node: Any) -> Iterator[tuple[str, ...]]:
    """The output tensors of each sparse, dense and ragged feature, in this order."""
    sparse, dense = len(_dtypes(node, "sparse_types")), len(_dtypes(node, "Tdense"))
    ragged = len(_dtypes(node, "ragged_value_types")) if node.op == "ParseExampleV2" else 0

    def tensor(index: int) -> str:
        return canonical(f"{node.name}:{index}")

    for i in range(sparse):
        yield tensor(i), tensor(sparse + i), tensor(2 * sparse + i)
    for i in range(dense):
        yield (tensor(3 * sparse + i),)
    for i in range(ragged):
        yield tensor(3 * sparse + dense + i), tensor(3 * sparse + dense + ragged + i)


def _sparse(node: Any, keys: Sequence[str]) -> Iterator[Feature]:
    for key, dtype in zip(keys, _dtypes(node, "sparse_types"), strict=True):
        yield Feature(key, Kind.VAR_LEN, dtype)


def _dense(node: Any, keys: Sequence[str], defaults: Sequence[Any]) -> Iterator[Feature]:
    shapes = node.attr["dense_shapes"].list.shape
    for key, dtype, shape, default in zip(
        keys, _dtypes(node, "Tdense"), shapes, defaults, strict=True
    ):
        sizes = tuple(int(dim.size) for dim in shape.dim)
        # Strings become objects, because NumPy's string type drops trailing NUL bytes.
        array = np.asarray(default, object if dtype == "string" else None)
        values = tuple(array.reshape(-1).tolist()) or None
        if not sizes or sizes[0] >= 0:
            yield Feature(key, Kind.FIXED_LEN, dtype, sizes, values)
        else:
            yield Feature(key, Kind.FIXED_LEN_SEQUENCE, dtype, sizes[1:], values)


def _ragged(node: Any, keys: Sequence[str]) -> Iterator[Feature]:
    if not keys:
        return
    splits = _dtypes(node, "ragged_split_types")
    for key, dtype, row_splits in zip(
        keys, _dtypes(node, "ragged_value_types"), splits, strict=True
    ):
        yield Feature(key, Kind.RAGGED, dtype, row_splits_dtype=row_splits)


# The converter replaces parse ops with these placeholders; an Estimator's receiver uses only them.
def placeholders(feature: Feature) -> dict[str, Any]:
    """Returns a placeholder for each column of a feature, by column name."""
    return {
        column.name: tf.compat.v1.placeholder(
            tf.dtypes.as_dtype(column.dtype), column.shape, name=scope_name(column.name)
        )
        for column in feature.columns
    }


def parsed_tensors(feature: Feature, columns: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the tensors that the parse op outputs for a feature, built from its columns.

    Args:
      feature: the feature as the parse op reads it.
      columns: tensors by column name, with the shapes in `feature.columns`.

    Returns:
      FIXED_LEN, FIXED_LEN_SEQUENCE: (dense,). VAR_LEN: (indices, values, dense shape).
      RAGGED: (values, row splits). A length greater than the column's width is a run-time error.
    """
    values = columns[feature.name]
    if feature.length_column is None:
        return (values,)
    lengths = columns[feature.length_column]
    with tf.name_scope(scope_name(f"{feature.name}/parsed")):
        longest = tf.maximum(
            tf.reduce_max(lengths, axis=0, keepdims=True), tf.constant([0], tf.int64)
        )
        steps = tf.range(tf.reshape(longest, []), name="steps")
        indices = tf.where(steps < tf.expand_dims(lengths, 1), name="indices")
        flat = tf.gather_nd(values, indices, name="values")
        _hand_over("indices", feature, indices)
        if feature.kind is Kind.VAR_LEN:
            rows = tf.shape(lengths, out_type=tf.int64)
            shape = tf.concat([rows, longest], 0, name="dense_shape")
            _hand_over("shape", feature, shape)
            return indices, flat, shape
        splits = tf.concat([tf.constant([0], tf.int64), tf.cumsum(tf.maximum(lengths, 0))], 0)
        splits = tf.cast(splits, feature.row_splits_dtype, name="row_splits")
        _hand_over("splits", feature, splits)
        return flat, splits


def _hand_over(role: str, feature: Feature, tensor: Any) -> None:
    """Tells the independence rule what a tensor is for a list; copies of its node keep that."""
    tensor.op._set_attr(LIST_ROLE, AttrValue(s=f"{role}:{feature.name}".encode()))
