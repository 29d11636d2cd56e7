"""Columns encoded as tf.Examples, and features inferred from data."""

import struct
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from colcast.client._errors import InputError
from colcast.client.columns._column import Column
from colcast.client.columns._columns import is_nested
from colcast.client.columns._dtypes import (
    BFLOAT16,
    FLOAT,
    INT64,
    STRING,
    DType,
    bfloat16_values,
)
from colcast.client.columns._inputs import Table
from colcast.client.columns._schema import LENGTH_SUFFIX, Feature, Kind
from colcast.client.columns._values import is_missing, is_nan
from colcast.client.wire import field, varint


def examples_of(
    columns: Mapping[str, Column], features: Mapping[str, Feature], rows: int
) -> list[bytes]:
    """Builds one serialized `tf.train.Example` per row.

    Args:
        columns: feature -> column of N rows, or of 1 row that every example repeats.
        features: determines the dtypes.
        rows: N.

    Returns:
        N messages; integers and booleans in int64_list, floats in float_list, strings in
        bytes_list; multi-valued columns without their padding, and no entry for an empty list.
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


def as_lists(table: Table, dtypes: Mapping[str, DType]) -> Table:
    """Converts every entry to the list of values that a tf.Example would hold.

    Columns of lengths stay unchanged.
    """
    columns = {
        name: values if _counts(name, table) else _lists(values, dtypes.get(name))
        for name, values in table.columns.items()
    }
    return Table(table.rows, columns, table.unused)


def infer_features(table: Table, dtypes: Mapping[str, DType]) -> dict[str, Feature]:
    """The features of a table of lists, all of them multi-valued.

    Args:
        table: a result of `as_lists`.
        dtypes: the dtypes of features for which they are known.
    """
    return {
        name: Feature(name, dtypes.get(name) or _infer(name, lists), Kind.MULTI, (None,))
        for name, lists in table.columns.items()
        if not _counts(name, table)
    }


_TYPES: tuple[tuple[DType, tuple[type, ...]], ...] = (
    (STRING, (str, bytes)),
    (INT64, (int, np.integer, np.bool_)),
    (FLOAT, (int, float, np.integer, np.floating)),
)


def _counts(name: str, table: Table) -> bool:
    """Whether a column holds the lengths of another column."""
    values = name.removesuffix(LENGTH_SUFFIX)
    return values != name and values in table.columns


def _lists(values: Any, dtype: DType | None) -> list[list[Any]]:
    """A column's lists. Among text or lists, NaN is pandas' mark for a missing value."""
    gaps = dtype in (INT64, STRING) or any(
        isinstance(value, str | bytes) or is_nested(value) for value in values
    )
    return [[] if gaps and is_nan(value) else _list(value) for value in values]


def _list(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(chain.from_iterable(_list(v) if is_nested(v) else [v] for v in value))
    if isinstance(value, np.ndarray):
        return list(value.ravel())
    return [] if is_missing(value) else [value]


def _infer(name: str, lists: list[list[Any]]) -> DType:
    types = {type(value) for values in lists for value in values}
    dtype = next((d for d, allowed in _TYPES if all(issubclass(t, allowed) for t in types)), None)
    if dtype is None:
        names = ", ".join(sorted(t.__name__ for t in types))
        raise InputError(f"a tf.Example holds integers, floats or text, got {names}", feature=name)
    return dtype


def _entries(name: str, column: Column, dtype: DType) -> list[bytes]:
    """One entry of the map `features` per row of the column."""
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
