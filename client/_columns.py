"""One feature's values, in any of the shapes callers have them, as one column."""

import contextlib
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from colcast.client._dtypes import BFLOAT16, FLOAT, INT64, STRING, Array, bfloat16_bits
from colcast.client._errors import InputError
from colcast.client._policies import Policies
from colcast.client._schema import LENGTH_SUFFIX, Feature, Kind
from colcast.client._values import Place, flat_array, is_missing, object_array


@dataclass(frozen=True, slots=True)
class Column:
    """A feature's values as they travel.

    Attributes:
        values: [rows, *shape] (MULTI and SEQUENCE: [rows, longest, ...], padded), in the
            dtype's storage; strings as an object array of bytes.
        lengths: int64 [rows], how many of each row's values are meant; only for MULTI.
    """

    values: Array
    lengths: Array | None = None

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.values.shape[0])

    def take(self, rows: Sequence[int] | slice | Array) -> "Column":
        """The column of these rows only."""
        lengths = None if self.lengths is None else self.lengths[rows]
        return Column(self.values[rows], lengths)

    def same_on_every_row(self) -> bool:
        """Whether all rows hold exactly the same bits (so NaN equals NaN, 0.0 is not -0.0)."""
        if self.rows <= 1:
            return True
        if self.values.ndim == 1 and not _alike(self.values[0], self.values[-1]):
            return False
        if self.lengths is not None and (self.lengths != self.lengths[0]).any():
            return False
        values = self.values.reshape(self.rows, -1)
        if values.dtype != object:
            values = np.ascontiguousarray(values).view(np.uint8)
        elif values.shape[1] == 1:
            flat = values.ravel().tolist()
            return flat.count(flat[0]) == len(flat)
        return bool((values == values[0]).all())


def column_of(feature: Feature, values: Any, policies: Policies, *, of_user: bool) -> Column:
    """Converts one feature's values, one entry a row, to a column.

    Args:
        feature: what the model declares.
        values: [rows] entries: scalars, or lists or arrays for features with an inner shape;
            an array [rows, ...] of any NumPy dtype; NOT_GIVEN or None where one is missing.
        policies: what to do about missing values.
        of_user: whether errors shall speak of the user rather than of a row.

    Raises:
        InputError: a value that does not fit, with its feature and row.
    """
    quick = _clean(feature, values, policies)
    if quick is not None:
        return Column(quick)
    if feature.kind in (Kind.MULTI, Kind.SEQUENCE):
        return _lists(feature, values, policies, of_user)
    sizes = _inner_shape(feature, values)
    if isinstance(values, np.ndarray) and (values.dtype != object or values.ndim > 1):
        flat: Any = _regular(feature, values, sizes, of_user)
    elif all(size == 1 for size in sizes) and _NESTED.isdisjoint(map(type, values)):
        flat = values
    else:
        flat = _nested(feature, values, sizes, policies, of_user)
    width = math.prod(sizes)
    place = Place(feature.name, None if of_user else lambda i: i // max(width, 1))
    default = _flat_default(feature, width)
    if default is not None and width != 1:
        default = None  # whole rows were replaced already
    flat_values = flat_array(flat, feature.dtype, default, place, policies)
    return Column(flat_values.reshape(len(values), *sizes))


def whole_array(feature: Feature, value: Any, policies: Policies) -> Array:
    """The value of a feature that does not come by rows, in its declared shape."""
    shape = tuple(feature.shape or ())
    row = Feature(feature.name, feature.dtype, Kind.SINGLE, shape)
    if None in shape:
        got = np.shape(value)
        fits = len(got) == len(shape) and all(
            size in (None, have) for size, have in zip(shape, got, strict=True)
        )
        row = Feature(feature.name, feature.dtype, Kind.SINGLE, got if fits else shape)
    return column_of(row, [value], policies, of_user=True).values[0, ...]


def default_column(feature: Feature) -> Column | None:
    """What the model takes for an absent feature, as a 1-row column; None if it must be given."""
    if feature.kind is Kind.MULTI:
        if feature.default is not None and feature.default.size:
            values = feature.default.reshape(1, -1)
            return Column(_stored(feature, values), np.array([values.shape[1]], np.int64))
        empty = np.empty((1, 0), feature.dtype.storage)
        return Column(empty, np.zeros(1, np.int64))
    if feature.default is None:
        return None
    sizes = tuple(int(size or 0) for size in feature.shape or ())
    if feature.kind is Kind.SEQUENCE:
        return Column(_stored(feature, feature.default.reshape(1, -1, *sizes[1:])))
    values = np.broadcast_to(feature.default.reshape(-1), (math.prod(sizes),))
    return Column(_stored(feature, np.array(values)).reshape(1, *sizes))


# Implementation details follow.


def _inner_shape(feature: Feature, values: Any) -> tuple[int, ...]:
    """The declared shape of one row's values; where any will do, that of the first row."""
    if feature.shape is not None:
        return tuple(int(size or 0) for size in feature.shape)
    if isinstance(values, np.ndarray):
        return tuple(values.shape[1:])
    return tuple(np.shape(values[0])) if len(values) else ()


def given_lengths(feature: Feature, values: Any, lengths: Any, policies: Policies) -> Column:
    """A multi-valued column that comes in its wire form: padded values and lengths."""
    column = column_of(feature, values, policies, of_user=False)
    spec = Feature(feature.name + LENGTH_SUFFIX, INT64, Kind.SINGLE, ())
    counts = column_of(spec, lengths, policies, of_user=False).values
    longest = column.values.shape[1]
    wrong = np.flatnonzero((counts < 0) | (counts > longest))
    if wrong.size:
        row = int(wrong[0])
        message = f"expected a length from 0 to {longest}, the padded width, got {counts[row]}"
        raise InputError(message, feature=spec.name, row=row)
    return Column(column.values, counts)


def _clean(feature: Feature, values: Any, policies: Policies) -> Array | None:
    """Values that need no checking but their type, converted in one go; None: the long way.

    An array of the very dtype and shape, or a list of one Python type that always fits.
    """
    if feature.kind is not Kind.SINGLE or policies.nan != "send":
        return None
    if isinstance(values, np.ndarray):
        if values.dtype != feature.dtype.storage or values.shape[1:] != feature.shape:
            return None
        if values.dtype != object:
            return values
        return values if set(map(type, values.ravel().tolist())) <= {bytes} else None
    if feature.shape != ():
        return None
    types = set(map(type, values))
    with contextlib.suppress(OverflowError, UnicodeEncodeError):
        if types == {bytes} and feature.dtype is STRING:
            return object_array(values)
        if types == {str} and feature.dtype is STRING:
            return object_array(list(map(str.encode, values)))
        if types == {int} and feature.dtype is INT64:
            return np.array(values, np.int64)
        if types == {float} and feature.dtype is FLOAT:
            converted = np.frombuffer(array("f", values), np.float32)
            return None if np.isinf(converted).any() else converted
    return None


def _alike(one: Any, two: Any) -> bool:
    """Whether two values may be the same; cheap, and only a no is certain."""
    return bool(one == two or one != one)


def _stored(feature: Feature, values: Array) -> Array:
    """A decoded default in the dtype's storage (bfloat16 is decoded to float32)."""
    return bfloat16_bits(values) if feature.dtype is BFLOAT16 else values


def _flat_default(feature: Feature, width: int) -> Any:
    column = default_column(feature)
    if column is None:
        return None
    return column.values.reshape(-1)[0] if width == 1 else column.values.reshape(-1)


_NESTED = {list, tuple, np.ndarray}


def _is_nested(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def _error(feature: Feature, row: int | None, of_user: bool, message: str) -> InputError:
    return InputError(message, feature=feature.name, row=None if of_user else row)


def _regular(feature: Feature, values: Array, sizes: tuple[int, ...], of_user: bool) -> Array:
    """An array [rows, ...] flattened; its inner shape must be the declared one."""
    got = values.shape[1:]
    if got != sizes and not (got == () and all(size == 1 for size in sizes)):
        raise _error(
            feature, None, of_user, f"expected shape {['rows', *sizes]}, got {list(values.shape)}"
        )
    return values.reshape(-1)


def _nested(
    feature: Feature, values: Any, sizes: tuple[int, ...], policies: Policies, of_user: bool
) -> Sequence[Any] | Array:
    """Rows that are lists or arrays themselves -> all their values in one flat run."""
    rows = list(values)
    gaps = [row for row, value in enumerate(rows) if is_missing(value)]
    if gaps:
        default = default_column(feature)
        if default is None or policies.none == "error":
            reason = "none='error'" if policies.none == "error" else "the model has no default"
            raise _error(feature, gaps[0], of_user, f"{rows[gaps[0]]!r} is missing and {reason}")
        filler = default.values[0].tolist()
        for row in gaps:
            rows[row] = filler
    for row, value in enumerate(rows):
        got = np.shape(value) if not isinstance(value, list | tuple) else _list_shape(value)
        if got != sizes and not (got == () and all(size == 1 for size in sizes)):
            shown = "lists of unequal length" if got is None else f"shape {list(got)}"
            raise _error(
                feature,
                row,
                of_user,
                f"expected {feature.dtype} of shape {list(sizes)}, got {shown}",
            )
    if rows and all(isinstance(value, np.ndarray) and value.dtype != object for value in rows):
        return np.stack(rows).reshape(-1)
    for _ in sizes:
        rows = list(chain.from_iterable(v if _is_nested(v) else [v] for v in rows))
    return rows


def _list_shape(value: Sequence[Any]) -> tuple[int, ...] | None:
    """The shape of a nested list; None if it is ragged."""
    inner = {_list_shape(v) if isinstance(v, list | tuple) else np.shape(v) for v in value}
    if len(inner) > 1 or None in inner:
        return None
    return (len(value), *(inner.pop() or ())) if inner else (len(value),)


def _lists(feature: Feature, values: Any, policies: Policies, of_user: bool) -> Column:
    """Rows that are lists of any length -> one padded array and the lengths."""
    rest = tuple(int(size or 0) for size in (feature.shape or ())[1:])
    if isinstance(values, np.ndarray) and values.dtype != object:
        return _dense_lists(feature, values, rest, of_user)
    rows = [() if is_missing(value) else value for value in values]
    if policies.none == "error" and any(map(is_missing, values)):
        first = next(i for i, value in enumerate(values) if is_missing(value))
        raise _error(feature, first, of_user, f"{values[first]!r} is missing and none='error'")
    for row, value in enumerate(rows):
        if not _is_nested(value):
            raise _error(
                feature, row, of_user, f"expected a list of {feature.dtype}, got {value!r}"
            )
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    ends = np.cumsum(lengths)

    def row_of(position: int) -> int:
        return int(np.searchsorted(ends, position, side="right"))

    flat: Sequence[Any] | Array = list(chain.from_iterable(rows))
    if rest:
        element = Feature(feature.name, feature.dtype, Kind.SINGLE, rest)
        try:
            values_2d = column_of(element, flat, policies, of_user=of_user).values
        except InputError as error:
            of_row = None if error.row is None else row_of(error.row)
            message = str(error).partition(": ")[2]
            raise InputError(message, feature=feature.name, row=of_row) from None
    else:
        place = Place(feature.name, None if of_user else row_of)
        values_2d = flat_array(flat, feature.dtype, None, place, policies)
    longest = int(lengths.max(initial=0))
    padded = np.full((len(rows), longest, *rest), _padding(feature), feature.dtype.storage)
    padded[np.arange(longest) < lengths[:, None]] = values_2d
    return Column(padded, lengths if feature.kind is Kind.MULTI else None)


def _dense_lists(feature: Feature, values: Array, rest: tuple[int, ...], of_user: bool) -> Column:
    """An array [rows, length, ...]: every row's list has the same length."""
    if values.shape[2:] != rest or values.ndim < 2:
        expected = ["rows", "values", *rest]
        raise _error(feature, None, of_user, f"expected shape {expected}, got {list(values.shape)}")
    place = Place(feature.name, None if of_user else lambda i: i // max(int(values[0].size), 1))
    flat = flat_array(values.reshape(-1), feature.dtype, None, place, Policies())
    lengths = np.full(len(values), values.shape[1], np.int64)
    return Column(flat.reshape(values.shape), lengths if feature.kind is Kind.MULTI else None)


def _padding(feature: Feature) -> Any:
    """What fills the end of shorter lists: the feature's default, else zero or empty."""
    if feature.kind is Kind.SEQUENCE and feature.default is not None and feature.default.size:
        return _stored(feature, feature.default).reshape(-1)[0]
    return b"" if feature.dtype is STRING else 0
