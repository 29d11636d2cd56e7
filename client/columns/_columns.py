"""Converts one feature's values, in any shape that callers use, to a column."""

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from colcast.client._errors import InputError
from colcast.client._settings import Policies
from colcast.client.columns._column import Column, empty_lists
from colcast.client.columns._dtypes import (
    BFLOAT16,
    FLOAT,
    INT64,
    STRING,
    Array,
    bfloat16_bits,
)
from colcast.client.columns._schema import Feature, Kind
from colcast.client.columns._values import (
    Fault,
    entries_of,
    flat_array,
    is_missing,
    is_nan,
    no_value,
    object_array,
)


@dataclass(frozen=True, slots=True)
class Source:
    """The feature whose values are converted, and the rules for converting them.

    Attributes:
        feature: the feature as the model declares it.
        policies: how missing values are treated.
        of_user: whether the values are the user's single row; errors then name no row.
    """

    feature: Feature
    policies: Policies
    of_user: bool = False

    def error(self, row: int | None, message: str) -> InputError:
        """The error for a row's value, or for the whole column if `row` is None."""
        row = None if self.of_user else row
        return InputError(message, feature=self.feature.name, row=row, of_user=self.of_user)

    def fault(self, row_of: Callable[[int], int]) -> Fault:
        """The errors of a flat run of values; `row_of` maps a position to its row."""
        return lambda position, message: self.error(int(row_of(position)), message)

    def no_value(self, row: int, value: Any) -> InputError:
        """The error for a missing value that has no default."""
        return self.error(row, no_value(value, self.feature.dtype, self.policies))


def clean_column(feature: Feature, values: Any, policies: Policies) -> Column | None:
    """A fast path for values that need only a check of their type.

    Handles an array with exactly the dtype and shape, and a list of one Python type that always
    fits. Returns None if the slow path is needed.
    """
    if feature.kind is not Kind.SINGLE:
        return None
    converted = _clean(feature, values)
    if converted is None:
        return None
    if converted.dtype.kind == "f" and not np.isfinite(converted).all():
        as_they_are = policies.nan == "send" and isinstance(values, np.ndarray)
        return Column(converted) if as_they_are else None
    return Column(converted)


def fixed_column(source: Source, values: Any) -> Column:
    """Converts a feature that has the same number of values on every row.

    Args:
        source: the feature, of kind SINGLE, and the rules.
        values: [rows] entries: scalars, or lists or arrays for features with an inner shape;
            an array [rows, ...] of any NumPy dtype. A missing entry is NOT_GIVEN or None; a
            missing list or array may also be NaN.
    """
    feature = source.feature
    sizes = _inner_shape(feature, values)
    if not _fits((), sizes):
        values = entries_of(values)
    width = math.prod(sizes)
    # Rows of several values get their default in `_nested`.
    default = default_column(feature) if width == 1 else None
    if isinstance(values, np.ndarray) and (values.dtype != object or values.ndim > 1):
        flat: Any = _regular(source, values, sizes)
    elif width == 1 and _NESTED.isdisjoint(map(type, values)):
        flat = values
    else:
        flat = _nested(source, values, sizes)
    converted = flat_array(
        flat,
        feature.dtype,
        None if default is None else default.values.reshape(-1)[0],
        source.fault(lambda position: position // max(width, 1)),
        source.policies,
    )
    return Column(converted.reshape(len(values), *sizes))


def whole_array(source: Source, value: Any) -> Array:
    """The value of a feature without a row dimension, in its declared shape."""
    feature = source.feature
    declared, got = feature.shape, list_shape(value)
    if declared is None:
        if got is None:
            raise source.error(None, "lists of unequal length")
        declared = got
    if got is None or len(got) != len(declared):
        got = tuple(size or 0 for size in declared)
    shape = tuple(got[i] if size is None else size for i, size in enumerate(declared))
    row = Feature(feature.name, feature.dtype, Kind.SINGLE, shape)
    return fixed_column(Source(row, source.policies, of_user=True), [value]).values[0, ...]


def default_column(feature: Feature) -> Column | None:
    """The default of an absent feature, as a 1-row column; None if it must be given.

    A multi-valued feature without a default is empty, as in a tf.Example that lacks it.
    """
    if feature.kind is Kind.MULTI:
        if feature.default is None or not feature.default.size:
            return empty_lists(feature.dtype.storage, 1)
        values = feature.default.reshape(1, -1)
        return Column(stored(feature, values), np.array([values.shape[1]], np.int64))
    if feature.kind is Kind.SEQUENCE and feature.default is not None:
        sizes = _sizes(feature)
        steps = feature.default.size // max(math.prod(sizes[1:]), 1)
        return Column(stored(feature, feature.default.reshape(1, steps, *sizes[1:])))
    row = _default_row(feature)
    return None if row is None else Column(stored(feature, row)[np.newaxis])


def no_rows(feature: Feature) -> Column:
    """A feature's column without rows; lists have width 1."""
    if feature.kind is Kind.MULTI:
        return empty_lists(feature.dtype.storage, 0)
    return Column(np.empty((0, *_sizes(feature)), feature.dtype.storage))


def stored(feature: Feature, values: Array) -> Array:
    """A decoded default in the dtype's storage type (bfloat16 decodes to float32)."""
    return bfloat16_bits(values) if feature.dtype is BFLOAT16 else values


def flattened(rows: list[Any], depth: int) -> Sequence[Any] | Array:
    """The values of lists nested `depth` deep, or of arrays, in one run."""
    # NumPy would turn integers into floats next to floats, and ignore the mask of a masked array.
    kinds = {row.dtype.kind if type(row) is np.ndarray else "O" for row in rows}
    if len(kinds) == 1 and kinds != {"O"}:
        return np.concatenate([row.reshape(-1) for row in rows])
    for _ in range(depth):
        rows = list(chain.from_iterable(v if is_nested(v) else [v] for v in rows))
    return rows


def is_nested(value: Any) -> bool:
    """Whether a row's entry is a list of values."""
    return isinstance(value, list | tuple | np.ndarray)


def list_shape(value: Any) -> tuple[int, ...] | None:
    """The shape of a nested list or an array; None if it is ragged."""
    if not isinstance(value, list | tuple):
        return tuple(np.shape(value))
    inner = {list_shape(v) for v in value}
    if len(inner) > 1 or None in inner:
        return None
    return (len(value), *(inner.pop() or ())) if inner else (len(value),)


_NESTED = {list, tuple, np.ndarray}
_INT, _FLOAT, _STR, _BYTES = {int}, {float}, {str}, {bytes}


def _clean(feature: Feature, values: Any) -> Array | None:
    if isinstance(values, np.ndarray):
        same = values.dtype == feature.dtype.storage and feature.dtype is not BFLOAT16
        if not same or values.shape[1:] != feature.shape:
            return None
        if values.dtype != object:
            return values
        return values if set(map(type, values.ravel().tolist())) <= {bytes} else None
    if feature.shape != ():
        return None
    types = set(map(type, values))
    try:
        if feature.dtype is INT64:
            return np.array(values, np.int64) if types == _INT else None
        if feature.dtype is STRING:
            if types == _STR:
                return object_array(list(map(str.encode, values)))
            return object_array(values) if types == _BYTES else None
        if feature.dtype is FLOAT and types == _FLOAT:
            return np.frombuffer(array("f", values), np.float32)
    except (OverflowError, UnicodeEncodeError):
        pass
    return None


def _default_row(feature: Feature) -> Array | None:
    """The decoded default row of a feature with a fixed shape; None if it must be given."""
    if feature.default is None:
        return None
    sizes = _sizes(feature)
    values = np.broadcast_to(feature.default.reshape(-1), (math.prod(sizes),))
    return np.array(values).reshape(sizes)


def _sizes(feature: Feature) -> tuple[int, ...]:
    """The declared shape of a row; 0 for unknown sizes."""
    return tuple(int(size or 0) for size in feature.shape or ())


def _inner_shape(feature: Feature, values: Any) -> tuple[int, ...]:
    """The declared shape of one row's values; if it is unknown, the first row's."""
    if feature.shape is not None:
        return _sizes(feature)
    if isinstance(values, np.ndarray):
        return tuple(values.shape[1:])
    return list_shape(values[0]) or () if len(values) else ()


def _fits(got: tuple[int, ...] | None, sizes: tuple[int, ...]) -> bool:
    return got == sizes or (got == () and all(size == 1 for size in sizes))


def _regular(source: Source, values: Array, sizes: tuple[int, ...]) -> Array:
    """Flattens an array [rows, ...], whose inner shape must be the declared one."""
    if not _fits(values.shape[1:], sizes):
        expected = ", ".join(["rows", *map(str, sizes)])
        raise source.error(None, f"expected shape [{expected}], got {list(values.shape)}")
    return values.reshape(-1)


def _nested(source: Source, values: Any, sizes: tuple[int, ...]) -> Sequence[Any] | Array:
    """Flattens rows that are lists or arrays into one run of values."""
    rows = list(values)
    default = _default_row(source.feature)
    for row, value in enumerate(rows):
        if is_missing(value) or (is_nan(value) and not _fits((), sizes)):
            if default is None or source.policies.none == "error":
                raise source.no_value(row, value)
            rows[row] = default.tolist()
            continue
        got = list_shape(value)
        if not _fits(got, sizes):
            seen = "lists of unequal length" if got is None else f"shape {list(got)}"
            wanted = f"{source.feature.dtype} of shape {list(sizes)}"
            raise source.error(row, f"expected {wanted}, got {seen}")
    return flattened(rows, len(sizes))
