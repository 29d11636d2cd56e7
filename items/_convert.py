"""Converts a batch of rows to each feature's values as the table's file stores them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from colcast.client import DTYPES, DType, InputError
from colcast.client.data_set import (
    Column,
    check_absent,
    columns_of,
    default_column,
    names_of,
    no_rows,
)
from colcast.items._schema import ItemFeature
from colcast.items._sources import Columns

Array = npt.NDArray[Any]
Lengths = npt.NDArray[np.int64]

_STRING = DTYPES["string"]


class Strings(NamedTuple):
    """Concatenated strings.

    Attributes:
        lengths: int64 [strings], lengths in bytes.
        data: the bytes of all strings.
    """

    lengths: Lengths
    data: Any


class Values(NamedTuple):
    """The values of some rows.

    Attributes:
        content: [values, *shape], in the dtype's storage, or the strings.
        lengths: int64 [rows], the number of values in each row; None if every row has one.
    """

    content: Array | Strings
    lengths: Lengths | None = None


def check_columns(features: Sequence[ItemFeature], batch: Columns, key: str) -> None:
    """Checks the batch's columns."""
    if key not in batch:
        there = ", ".join(sorted(map(repr, batch)))
        raise InputError(f"the key is not a column; the columns are {there}", feature=key)
    wanted = {one.name: one.feature for one in features}
    unused = frozenset(batch) - names_of(wanted) - {key}
    check_absent(wanted, batch.keys(), unused)


def convert(features: Sequence[ItemFeature], batch: Columns, rows: int) -> Iterator[Values]:
    """Yields every feature's values, or the model's default if the batch lacks the column."""
    for feature in features:
        yield _given(feature, batch) or _values_of(feature, _absent(feature, rows))


def _absent(feature: ItemFeature, rows: int) -> Column:
    default = default_column(feature.feature) if rows else None
    return default.take(np.zeros(rows, np.intp)) if default else no_rows(feature.feature)


def _given(feature: ItemFeature, batch: Columns) -> Values | None:
    wanted = {feature.name: feature.feature}
    own = {name: batch[name] for name in names_of(wanted) & batch.keys()}
    if feature.name not in own:
        return None
    values, array = None, own[feature.name]
    if len(own) == 1 and isinstance(array, pa.Array):
        own[feature.name] = array = _filled(feature, array)
        values = _unconverted(feature, array)
        if values is None:
            own[feature.name] = _shaped(feature, array)
    return values or _values_of(feature, columns_of(wanted, own)[feature.name])


def _values_of(feature: ItemFeature, column: Column) -> Values:
    """The values of a column, converted by the client, without padding."""
    content, lengths = column.values, column.lengths
    if lengths is not None:
        content = content[np.arange(content.shape[1]) < lengths[:, np.newaxis]]
    if feature.feature.dtype is _STRING:
        texts = content.reshape(-1).tolist()
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        return Values(Strings(sizes, b"".join(texts)), lengths)
    return Values(content.reshape(-1, *feature.shape), lengths)


def _filled(feature: ItemFeature, array: Any) -> Any:
    """Replaces nulls with the default, if the Arrow array's type can hold it."""
    default = feature.feature.default
    if not array.null_count or (default is None and not feature.is_list):
        return array
    values = [] if default is None else default.reshape(-1).tolist()
    value = values if feature.is_list or feature.shape else values[0]
    try:
        scalar = pa.scalar(value, array.type)
    except (ValueError, TypeError, OverflowError):
        return array
    text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    return pc.fill_null(array, scalar) if text or scalar.as_py() == value else array


def _shaped(feature: ItemFeature, array: Any) -> Any:
    """Reshapes an Arrow array of flat lists to the feature's two or more dimensions."""
    several = len(feature.shape) > 1 and not feature.is_list
    if not several or not _nested(array.type) or _nested(array.type.value_type):
        return array
    if array.null_count:
        wrong = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
    else:
        wrong = np.flatnonzero(_lengths(array) != np.prod(feature.shape))
    if wrong.size:
        row = int(wrong[0])
        wanted = f"{feature.feature.dtype} of shape {list(feature.shape)}"
        message = f"expected {wanted}, got {array[row].as_py()}"
        raise InputError(message, feature=feature.name, row=row)
    return array.flatten().to_numpy(zero_copy_only=False).reshape(len(array), *feature.shape)


def _unconverted(feature: ItemFeature, array: Any) -> Values | None:
    """The values of an Arrow array if they need no conversion; otherwise None."""
    nested = _nested(array.type)
    if nested != (feature.is_list or feature.shape != ()) or (feature.is_list and feature.shape):
        return None
    if array.null_count:
        return None
    content = _content(feature.feature.dtype, array.flatten() if nested else array)
    if content is None or not nested:
        return None if content is None else Values(content)
    lengths = _lengths(array)
    if feature.is_list:
        return Values(content, lengths)
    if (lengths != np.prod(feature.shape)).any():
        return None
    return Values(content if isinstance(content, Strings) else content.reshape(-1, *feature.shape))


def _content(dtype: DType, array: Any) -> Array | Strings | None:
    """The values of an array without nulls whose type fits this dtype exactly; else None."""
    types = pa.types
    if array.null_count:
        return None
    if dtype is _STRING:
        texts = types.is_string, types.is_large_string, types.is_binary, types.is_large_binary
        return _strings(array) if any(of(array.type) for of in texts) else None
    if dtype.name == "bfloat16" or array.type != pa.from_numpy_dtype(dtype.storage):
        return None
    values: Array = array.to_numpy(zero_copy_only=False)
    return values


def _strings(array: Any) -> Strings:
    array = array.cast(pa.large_binary())
    _, ends, data = array.buffers()
    bounds = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    if not len(array) or data is None:
        return Strings(np.zeros(len(array), np.int64), b"")
    return Strings(np.diff(bounds), memoryview(data)[bounds[0] : bounds[-1]])


def _nested(kind: Any) -> bool:
    types = pa.types
    return any(of(kind) for of in (types.is_list, types.is_large_list, types.is_fixed_size_list))


def _lengths(array: Any) -> Lengths:
    if pa.types.is_fixed_size_list(array.type):
        return np.full(len(array), array.type.list_size, np.int64)
    lengths: Lengths = array.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths
