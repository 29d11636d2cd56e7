"""Features told from the data alone, where the model's metadata cannot: tf.Example only."""

from typing import Any

import numpy as np
from colcast.client._columns import is_nested
from colcast.client._dtypes import FLOAT, INT64, STRING, DType
from colcast.client._errors import InputError
from colcast.client._inputs import Table
from colcast.client._schema import Feature, Kind
from colcast.client._values import is_missing, is_nan


def as_lists(table: Table) -> Table:
    """The table with every entry as the list of values that a tf.Example would hold of it."""
    columns = {name: _lists(values) for name, values in table.columns.items()}
    return Table(table.rows, columns, table.unused)


def infer_features(table: Table) -> dict[str, Feature]:
    """The features of a table of lists, all of them multi-valued.

    Raises:
        InputError: a column of values that a tf.Example cannot hold.
    """
    return {name: _infer(name, lists) for name, lists in table.columns.items()}


# Implementation details follow.

_TYPES: tuple[tuple[DType, tuple[type, ...]], ...] = (
    (STRING, (str, bytes)),
    (INT64, (int, np.integer, np.bool_)),
    (FLOAT, (int, float, np.integer, np.floating)),
)


def _lists(values: Any) -> list[list[Any]]:
    """A column's lists; beside text or lists, a NaN is pandas' mark for nothing."""
    gaps = any(isinstance(value, str | bytes) or is_nested(value) for value in values)
    return [[] if gaps and is_nan(value) else _list(value) for value in values]


def _list(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, np.ndarray):
        return list(value.ravel())
    return [] if is_missing(value) else [value]


def _infer(name: str, lists: list[list[Any]]) -> Feature:
    types = {type(value) for values in lists for value in values}
    dtype = next((d for d, allowed in _TYPES if all(issubclass(t, allowed) for t in types)), None)
    if dtype is None:
        names = ", ".join(sorted(t.__name__ for t in types))
        raise InputError(f"a tf.Example holds integers, floats or text, got {names}", feature=name)
    return Feature(name, dtype, Kind.MULTI, (None,))
