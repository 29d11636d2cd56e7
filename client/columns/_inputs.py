"""Converts every accepted form of data to a table: feature name -> one entry per row.

tf.Examples are handled in `_inputs_examples.py`. A table holds the caller's values unconverted;
only `_columns.py` has the rules for types and missing values.

pandas, Polars and pyarrow are not imported here: a caller with a frame has imported its library. A
numeric column without missing values stays an array; everything else becomes a list, with None or
the library's own mark for missing values.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from colcast.client._errors import InputError
from colcast.client.columns._values import NOT_GIVEN, refuse_masked, shown

Wanted = Set[str] | None
"""The names of the signature's inputs; None for any names."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows stored as columns.

    Attributes:
        rows: the number of rows.
        columns: feature -> [rows] entries, a list or an array; NOT_GIVEN where a row lacks it.
        unused: names that the signature does not use.
    """

    rows: int
    columns: dict[str, Any]
    unused: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Rows:
    """Candidates with a separate user; if `user` is None, every row holds the user's features."""

    items: Any
    user: Any = None


def table_of_user(user: Any, wanted: Wanted) -> Table:
    """The user's features, a dict or a pandas Series, as a table of one row."""
    if _kind(user) == "pandas.Series":
        if not user.index.is_unique:
            twice = user.index[user.index.duplicated()][0]
            raise InputError(f"given {(user.index == twice).sum()} times in user", feature=twice)
        user = dict(user.items())
    if not isinstance(user, Mapping):
        row = "; a frame's first row is frame.iloc[0]" if _kind(user) == "pandas.DataFrame" else ""
        raise InputError(
            f"user must be a dict of features or a pandas Series, got {type(user).__name__}{row}"
        )
    check_names(user)
    columns = {name: [value] for name, value in user.items() if wanted is None or name in wanted}
    return Table(1, columns, frozenset(user.keys() - columns.keys()))


def table_of_items(items: Any, wanted: Wanted) -> Table:
    """Candidates in any of the accepted forms as a table."""
    if isinstance(items, Mapping):
        return table_of_columns(items, wanted)
    if _kind(items) in _FRAMES:
        return table_of_frame(items, wanted)
    if isinstance(items, Sequence) and not isinstance(items, str | bytes):
        return table_of_rows(items, wanted)
    raise InputError(
        "items must be a list of dicts, a dict of lists or arrays, a pandas or Polars DataFrame "
        f"or a pyarrow Table, got {type(items).__name__}"
    )


def table_of_rows(rows: Sequence[Mapping[str, Any]], wanted: Wanted) -> Table:
    """A list of dicts, one per row, as a table of the wanted features."""
    bad = next((i for i, row in enumerate(rows) if not isinstance(row, Mapping)), None)
    if bad is not None:
        raise InputError(f"expected a dict of features, got {type(rows[bad]).__name__}", row=bad)
    names: dict[str, Any] = {}
    for row in rows:
        names.update(row)  # faster than a loop over their keys
    check_names(names)
    columns: dict[str, Any] = {}
    for name in names if wanted is None else [name for name in names if name in wanted]:
        try:
            columns[name] = [row[name] for row in rows]
        except KeyError:
            columns[name] = [row.get(name, NOT_GIVEN) for row in rows]
    return Table(len(rows), columns, frozenset(names.keys() - columns.keys()))


def table_of_columns(columns: Mapping[str, Any], wanted: Wanted) -> Table:
    """A dict of lists or arrays, one entry per row, as a table of the wanted features."""
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


def table_of_frame(frame: Any, wanted: Wanted) -> Table:
    """A frame as a table of the wanted columns."""
    names = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
    columns: dict[str, Any] = {}
    check_names(names)
    for name in names:
        if names.count(name) > 1:
            raise InputError("the frame has two columns of this name", feature=name)
        if wanted is None or name in wanted:
            columns[name] = _entries(name, frame[name])
    rows = frame.num_rows if hasattr(frame, "num_rows") else len(frame)
    return Table(rows, columns, frozenset(names).difference(columns))


def check_names(names: Iterable[Any]) -> None:
    """Raises InputError if a feature's name is not text."""
    if not set(map(type, names)) <= {str}:
        bad = next(name for name in names if not isinstance(name, str))
        raise InputError(f"feature names must be text, got {shown(bad)}")


_FRAMES = ("pandas.DataFrame", "polars.DataFrame", "pyarrow.Table", "pyarrow.RecordBatch")


def _kind(data: Any) -> str:
    """The library and type of a value, such as "pandas.Series"."""
    return f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"


def _entries(name: str, values: Any) -> Any:
    """One column, from any library, as a list or an array with one entry per row."""
    if isinstance(values, list | tuple):
        return values
    library = type(values).__module__.partition(".")[0]
    if library in _SERIES and not hasattr(values, "columns"):
        return _SERIES[library](values)
    if isinstance(values, str | bytes) or not hasattr(values, "__array__"):
        raise InputError(
            f"expected a list or an array, one entry per row, got {type(values).__name__}",
            feature=name,
        )
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.ndim == 0:
        raise InputError("expected one entry per row, got a scalar", feature=name)
    refuse_masked(name, array)
    return array


def _pandas(series: Any) -> Any:
    if not isinstance(series.dtype, np.dtype) and series.isna().any():
        missing = series.isna().tolist()
        return [None if gap else v for gap, v in zip(missing, series.tolist(), strict=True)]
    values = series.to_numpy()
    if values.dtype.kind in "biufcM":
        return values
    # NumPy's tolist() is faster for text, since pandas' rebuilds the array, but it would turn time
    # spans into integers.
    return values.tolist() if values.dtype == object else series.tolist()


def _polars(series: Any) -> Any:
    if series.null_count() or not (series.dtype.is_numeric() or series.dtype.is_temporal()):
        return series.to_list()
    return series.to_numpy()


def _pyarrow(column: Any) -> Any:
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    types = __import__("pyarrow").types
    if array.null_count:
        return array.to_pylist()
    if types.is_list(array.type) or types.is_large_list(array.type):
        values = array.flatten()
        if _plain(types, values.type) and not values.null_count:
            ends = np.cumsum(array.value_lengths().to_numpy())[:-1]
            return np.split(values.to_numpy(zero_copy_only=False), ends)[: len(array)]
    plain = _plain(types, array.type)
    return array.to_numpy(zero_copy_only=False) if plain else array.to_pylist()


def _plain(types: Any, kind: Any) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind))


_SERIES: dict[str, Callable[[Any], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _pyarrow,
}
