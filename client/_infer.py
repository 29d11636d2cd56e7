"""Features told from the data alone, where the model's metadata cannot: tf.Example only."""

from typing import Any

import numpy as np
from colcast.client._dtypes import FLOAT, INT64, STRING, DType
from colcast.client._errors import InputError
from colcast.client._inputs import Table
from colcast.client._schema import Feature, Kind
from colcast.client._values import is_missing


def as_lists(table: Table) -> Table:
    """The table with every entry as the list of values that a tf.Example would hold of it."""
    columns = {name: [_list(value) for value in table.columns[name]] for name in table.columns}
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
