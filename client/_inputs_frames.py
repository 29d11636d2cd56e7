"""pandas and Polars DataFrames and pyarrow Tables -> tables.

None of the three is imported here: a caller who has a frame has its library. A numeric column
without gaps stays the array it is; everything else becomes a list, with the library's own idea
of a missing value in it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from colcast.client._errors import InputError
from colcast.client._inputs import Table, Wanted, check_names


def is_frame(data: Any) -> bool:
    """Whether this is a frame of one of the three libraries."""
    return _kind(data) in _READERS


def table_of_frame(frame: Any, wanted: Wanted) -> Table:
    """A frame as a table of the wanted columns.

    Raises:
        InputError: two columns of the same name, or a name that is not text.
    """
    read = _READERS[_kind(frame)]
    names = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
    columns: dict[str, Any] = {}
    check_names(names)
    for name in names:
        if names.count(name) > 1:
            raise InputError("the frame has two columns of this name", feature=name)
        if wanted is None or name in wanted:
            columns[name] = read(frame[name])
    rows = frame.num_rows if hasattr(frame, "num_rows") else len(frame)
    return Table(rows, columns, frozenset(names).difference(columns))


# Implementation details follow.


def _kind(data: Any) -> str:
    return f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"


def _pandas(series: Any) -> Any:
    values = series.to_numpy()
    return values if values.dtype.kind in "biufcM" else series.tolist()


def _polars(series: Any) -> Any:
    if series.null_count() or not (series.dtype.is_numeric() or series.dtype.is_temporal()):
        return series.to_list()
    return series.to_numpy()


def _pyarrow(column: Any) -> Any:
    array = column.combine_chunks()
    types = __import__("pyarrow").types
    if array.null_count:
        return array.to_pylist()
    if types.is_list(array.type) or types.is_large_list(array.type):
        values = array.flatten()
        if _plain(types, values.type) and not values.null_count:
            ends = np.cumsum(array.value_lengths().to_numpy())[:-1]
            return np.split(values.to_numpy(), ends)
    return array.to_numpy() if _plain(types, array.type) else array.to_pylist()


def _plain(types: Any, kind: Any) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind))


_READERS: dict[str, Callable[[Any], Any]] = {
    "pandas.DataFrame": _pandas,
    "polars.DataFrame": _polars,
    "pyarrow.Table": _pyarrow,
}
