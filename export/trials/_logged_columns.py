"""Converts requests recorded as columns into equivalent tf.Examples."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

_LENGTH = "/length"


def examples_of(columns: Mapping[str, Any]) -> tuple[bytes, ...]:
    """One serialized tf.Example per row.

    Args:
      columns: arrays of N rows, or of one row for all; `f/length`, if there is one, gives the
        number of values in each row of `f`.

    Raises:
      ValueError: a column has another number of rows.
    """
    rows = max(len(column) for column in columns.values())
    examples = [tf.train.Example() for _ in range(rows)]
    for name, column in columns.items():
        if name.endswith(_LENGTH) and name.removesuffix(_LENGTH) in columns:
            continue
        lengths = columns.get(name + _LENGTH)
        every = np.broadcast_to(column, (rows, *column.shape[1:]))
        counts = None if lengths is None else np.broadcast_to(lengths, (rows,))
        for row, example in enumerate(examples):
            values = every[row] if counts is None else every[row][: counts[row]]
            _field(example.features.feature[name], column.dtype).value.extend(values.flat)
    return tuple(example.SerializeToString() for example in examples)


def _field(feature: Any, dtype: Any) -> Any:
    if np.issubdtype(dtype, np.object_):
        return feature.bytes_list
    return feature.float_list if np.issubdtype(dtype, np.floating) else feature.int64_list
