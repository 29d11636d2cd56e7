"""Columns -> serialized tf.Examples, one per row; without TensorFlow, for the path of today."""

import struct
from collections.abc import Mapping
from typing import Any

from colcast.client._columns import Column
from colcast.client._dtypes import BFLOAT16, STRING, DType, bfloat16_values
from colcast.client._schema import Feature
from colcast.client.wire import field, varint


def examples_of(
    columns: Mapping[str, Column], features: Mapping[str, Feature], rows: int
) -> list[bytes]:
    """Builds one serialized `tf.train.Example` per row.

    Args:
        columns: feature -> column of N rows, or of 1 row, which every example repeats.
        features: their dtypes.
        rows: N.

    Returns:
        N messages; integers and booleans in int64_list, floats in float_list, strings in
        bytes_list; of a multi-valued column only the values within its length, and no entry
        where there is none.
    """
    shared: list[bytes] = []
    varying: list[list[bytes]] = []
    for name, column in columns.items():
        entries = _entries(name, column, features[name].dtype)
        if len(entries) == 1:
            shared += entries
        else:
            varying.append(entries)
    common = b"".join(shared)
    if not varying:
        return [field(1, common)] * rows
    return [field(1, common + b"".join(entries)) for entries in zip(*varying, strict=True)]


# Implementation details follow.


def _entries(name: str, column: Column, dtype: DType) -> list[bytes]:
    """One entry of the map `features` a row of the column."""
    key = field(1, name.encode())
    lists = _rows(column, dtype)
    if dtype is STRING:
        contents = [field(1, b"".join([field(1, value) for value in row])) for row in lists]
    elif dtype.kind == "f":
        contents = [field(2, field(1, struct.pack(f"<{len(row)}f", *row))) for row in lists]
    else:
        contents = [field(3, field(1, b"".join(map(varint, row)))) for row in lists]
    return [
        field(1, key + field(2, content)) if row else b""
        for row, content in zip(lists, contents, strict=True)
    ]


def _rows(column: Column, dtype: DType) -> list[list[Any]]:
    """Each row's values in a flat list."""
    values = bfloat16_values(column.values) if dtype is BFLOAT16 else column.values
    flat: list[list[Any]] = values.reshape(column.rows, -1).tolist()
    if column.lengths is None:
        return flat
    return [row[:length] for row, length in zip(flat, column.lengths.tolist(), strict=True)]
