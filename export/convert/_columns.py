"""Builds the outputs of a parse op from columns, the core of the conversion.

The converter replaces the parse op with them; the Estimator's receiver uses them instead of one.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from colcast.export.convert._features import Feature, Kind
from colcast.export.graph._nodes import scope_name


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
        if feature.kind is Kind.VAR_LEN:
            rows = tf.shape(lengths, out_type=tf.int64)
            return indices, flat, tf.concat([rows, longest], 0, name="dense_shape")
        splits = tf.concat([tf.constant([0], tf.int64), tf.cumsum(tf.maximum(lengths, 0))], 0)
        return flat, tf.cast(splits, feature.row_splits_dtype, name="row_splits")
