"""Features told from the data, where the model's metadata cannot: tf.Example only."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from colcast.client._columns import is_nested
from colcast.client._dtypes import FLOAT, INT64, STRING, DType
from colcast.client._errors import InputError
from colcast.client._inputs import Table
from colcast.client._schema import LENGTH_SUFFIX, Feature, Kind
from colcast.client._values import is_missing, is_nan, unmasked_entries


def as_lists(table: Table, dtypes: Mapping[str, DType]) -> Table:
    """The table with every entry as the list of values that a tf.Example would hold of it.

    Lengths of padded values stay as they are.
    """
    columns = {
        name: values if _counts(name, table) else _lists(values, dtypes.get(name))
        for name, values in table.columns.items()
    }
    return Table(table.rows, columns, table.unused)


def infer_features(table: Table, dtypes: Mapping[str, DType]) -> dict[str, Feature]:
    """The features of a table of lists, all of them multi-valued.

    Args:
        table: what `as_lists` made.
        dtypes: of the features whose dtype is known.

    Raises:
        InputError: a column of values that a tf.Example cannot hold.
    """
    return {
        name: Feature(name, dtypes.get(name) or _infer(name, lists), Kind.MULTI, (None,))
        for name, lists in table.columns.items()
        if not _counts(name, table)
    }


# Implementation details follow.

_TYPES: tuple[tuple[DType, tuple[type, ...]], ...] = (
    (STRING, (str, bytes)),
    (INT64, (int, np.integer, np.bool_)),
    (FLOAT, (int, float, np.integer, np.floating)),
)


def _counts(name: str, table: Table) -> bool:
    """Whether a column holds the lengths of another one."""
    values = name.removesuffix(LENGTH_SUFFIX)
    return values != name and values in table.columns


def _lists(values: Any, dtype: DType | None) -> list[list[Any]]:
    """A column's lists; beside text or lists, a NaN is pandas' mark for nothing."""
    values = unmasked_entries(values)
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
