"""The forms data comes in -> one table: feature name -> one entry a row.

Frames and tf.Examples have files of their own (`_inputs_*.py`). A table holds the values as the
caller had them, unconverted, so that the rules for types and gaps stand once, in `_columns.py`.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from colcast.client._errors import InputError
from colcast.client._values import NOT_GIVEN, shown

Wanted = Set[str] | None
"""Names of the signature's inputs; None: whatever comes."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as columns.

    Attributes:
        rows: how many rows there are.
        columns: feature -> [rows] entries, a list or an array; NOT_GIVEN where a row lacks it.
        unused: names that came and that nobody asked for.
    """

    rows: int
    columns: dict[str, Any]
    unused: frozenset[str] = field(default_factory=frozenset)


def table_of_user(user: Mapping[str, Any], wanted: Wanted) -> Table:
    """The user's features as a table of one row."""
    if not isinstance(user, Mapping):
        raise InputError(f"user must be a dict of features, got {type(user).__name__}")
    check_names(user)
    columns = {name: [value] for name, value in user.items() if wanted is None or name in wanted}
    return Table(1, columns, frozenset(user.keys() - columns.keys()))


def table_of_rows(rows: Sequence[Mapping[str, Any]], wanted: Wanted) -> Table:
    """A list of dicts, one a row, as a table of the wanted features.

    Raises:
        InputError: a row is not a dict; the row is named.
    """
    bad = next((i for i, row in enumerate(rows) if not isinstance(row, Mapping)), None)
    if bad is not None:
        raise InputError(f"expected a dict of features, got {type(rows[bad]).__name__}", row=bad)
    names = dict.fromkeys(chain.from_iterable(rows))
    check_names(names)
    columns: dict[str, Any] = {}
    for name in names if wanted is None else [name for name in names if name in wanted]:
        try:
            columns[name] = [row[name] for row in rows]
        except KeyError:
            columns[name] = [row.get(name, NOT_GIVEN) for row in rows]
    return Table(len(rows), columns, frozenset(names.keys() - columns.keys()))


def table_of_columns(columns: Mapping[str, Any], wanted: Wanted) -> Table:
    """A dict of lists or arrays, one entry a row, as a table of the wanted features.

    Raises:
        InputError: a column is not a list or an array, or has another number of rows.
    """
    check_names(columns)
    kept: dict[str, Any] = {}
    rows, first = 0, ""
    for name, values in columns.items():
        values = _entries(name, values)
        if not first:
            rows, first = len(values), name
        elif len(values) != rows:
            raise InputError(f"{len(values)} rows, but {first!r} has {rows}", feature=name)
        if wanted is None or name in wanted:
            kept[name] = values
    return Table(rows, kept, frozenset(columns.keys() - kept.keys()))


def check_names(names: Iterable[Any]) -> None:
    """Raises InputError if a feature's name is not text."""
    if not set(map(type, names)) <= {str}:
        bad = next(name for name in names if not isinstance(name, str))
        raise InputError(f"feature names must be text, got {shown(bad)}")


# Implementation details follow.


def _entries(name: str, values: Any) -> Any:
    if isinstance(values, list | tuple):
        return values
    if isinstance(values, str | bytes) or not hasattr(values, "__array__"):
        raise InputError(
            f"expected a list or an array, one entry a row, got {type(values).__name__}",
            feature=name,
        )
    array = np.asarray(values)
    if array.ndim == 0:
        raise InputError("expected one entry a row, got a scalar", feature=name)
    return array
