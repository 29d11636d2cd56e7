"""Converts a column of some rows to values as the table's file stores them."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from colcast.client import DTYPES, DType, InputError
from colcast.client.data_set import Column
from colcast.items._features import ItemFeature

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


def values_of_column(feature: ItemFeature, column: Column) -> Values:
    """The values of a column, converted by the client, without padding."""
    content, lengths = column.values, column.lengths
    if lengths is not None:
        content = content[np.arange(content.shape[1]) < lengths[:, np.newaxis]]
    if feature.feature.dtype is _STRING:
        return Values(_strings(content.reshape(-1).tolist()), lengths)
    return Values(content.reshape(-1, *feature.shape), lengths)


def no_values(feature: ItemFeature) -> Values:
    """The values of zero rows."""
    none = np.zeros(0, np.int64)
    lengths = none if feature.is_list else None
    if feature.feature.dtype is _STRING:
        return Values(Strings(none, b""), lengths)
    return Values(np.empty((0, *feature.shape), feature.feature.dtype.storage), lengths)


def filled(feature: ItemFeature, array: Any) -> Any:
    """An Arrow array with the default in rows without a value, if its type can hold the default."""
    default = _default(feature, array.type) if array.null_count else None
    return array if default is None else pc.fill_null(array, default)


def shaped(feature: ItemFeature, array: Any) -> Any:
    """Reshapes an Arrow array of flat lists to the feature's two or more dimensions.

    Raises:
        InputError: a row has the wrong number of values, or none.
    """
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


def values_of_arrow(feature: ItemFeature, array: Any) -> Values | None:
    """The values of an Arrow array if they need no conversion; otherwise None."""
    kind = array.type
    nested = _nested(kind)
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


def _nested(kind: Any) -> bool:
    types = pa.types
    return any(of(kind) for of in (types.is_list, types.is_large_list, types.is_fixed_size_list))


def _strings(values: list[bytes]) -> Strings:
    return Strings(np.fromiter(map(len, values), np.int64, len(values)), b"".join(values))


def _default(feature: ItemFeature, kind: Any) -> Any:
    """The default for missing rows as an Arrow scalar; None if no scalar equals it."""
    default = feature.feature.default
    if default is None and not feature.is_list:
        return None
    values = [] if default is None else default.reshape(-1).tolist()
    value = values if feature.is_list or feature.shape else values[0]
    try:
        scalar = pa.scalar(value, kind)
    except (ValueError, TypeError, OverflowError):
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return scalar
    return scalar if scalar.as_py() == value else None


def _content(dtype: DType, array: Any) -> Array | Strings | None:
    """The values of an array of exactly this dtype without nulls, or of text; else None."""
    types = pa.types
    if array.null_count:
        return None
    if dtype is _STRING:
        text = types.is_string(array.type) or types.is_large_string(array.type)
        if not text and not types.is_binary(array.type) and not types.is_large_binary(array.type):
            return None
        return _arrow_strings(array.cast(pa.large_binary()))
    if dtype.name == "bfloat16" or array.type != pa.from_numpy_dtype(dtype.storage):
        return None
    values: Array = array.to_numpy(zero_copy_only=False)
    return values


def _arrow_strings(array: Any) -> Strings:
    _, ends, data = array.buffers()
    bounds = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    if not len(array) or data is None:
        return Strings(np.zeros(len(array), np.int64), b"")
    return Strings(np.diff(bounds), memoryview(data)[bounds[0] : bounds[-1]])


def _lengths(array: Any) -> Lengths:
    if pa.types.is_fixed_size_list(array.type):
        return np.full(len(array), array.type.list_size, np.int64)
    lengths: Lengths = array.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths
