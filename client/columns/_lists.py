"""Converts features that are lists of any length: pads them to the longest."""

from typing import Any

import numpy as np
from colcast.client.columns._column import Column, empty_lists
from colcast.client.columns._columns import (
    Source,
    fixed_column,
    flattened,
    is_nested,
    list_shape,
    stored,
)
from colcast.client.columns._dtypes import INT64, STRING, Array
from colcast.client.columns._schema import LENGTH_SUFFIX, Feature, Kind
from colcast.client.columns._values import entries_of, flat_array, is_missing, is_nan, shown


def list_column(source: Source, values: Any) -> Column:
    """Converts a multi-valued feature or a sequence.

    A multi-valued column has at least width 1, because a server that joins requests needs a value
    to pad lists with. (Models see the padding of a sequence, so none is added there.)

    Args:
        source: the feature, of kind MULTI or SEQUENCE, and the rules.
        values: [rows] lists or arrays, each of its own length; an array [rows, length, ...];
            NOT_GIVEN, None or NaN for an empty list.
    """
    return _at_least_one_wide(_lists(source, values))


def given_lengths(source: Source, values: Any, lengths: Any) -> Column:
    """A multi-valued column given in its wire form: padded values and lengths [rows]."""
    column = _lists(source, values)
    spec = Feature(source.feature.name + LENGTH_SUFFIX, INT64, Kind.SINGLE, ())
    of_length = Source(spec, source.policies, source.of_user)
    counts = fixed_column(of_length, lengths).values
    longest = column.values.shape[1]
    wrong = np.flatnonzero((counts < 0) | (counts > longest))
    if wrong.size:
        row = int(wrong[0])
        message = f"expected a length from 0 to {longest}, the padded width, got {counts[row]}"
        raise of_length.error(row, message)
    return _at_least_one_wide(Column(column.values, counts))


def _at_least_one_wide(column: Column) -> Column:
    if column.lengths is None or column.values.shape[1]:
        return column
    return empty_lists(column.values.dtype, column.rows)


def _lists(source: Source, values: Any) -> Column:
    """The lists padded to the longest, which may be 0."""
    values = entries_of(values)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return _equal_lists(source, values)
    rest = _rest(source.feature)
    rows = [_checked(source, row, value, rest) for row, value in enumerate(values)]
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    padded = np.full(
        (len(rows), int(lengths.max(initial=0)), *rest),
        _padding(source.feature),
        source.feature.dtype.storage,
    )
    meant = np.arange(padded.shape[1]) < lengths[:, None]
    padded[meant] = _converted(source, rows, lengths).reshape(-1, *rest)
    return Column(padded, lengths if source.feature.kind is Kind.MULTI else None)


def _rest(feature: Feature) -> tuple[int, ...]:
    """The shape of one step of a sequence."""
    return tuple(int(size or 0) for size in (feature.shape or ())[1:])


def _checked(source: Source, row: int, value: Any, rest: tuple[int, ...]) -> Any:
    """Returns a row's list after checking that every entry has the shape of a step."""
    if is_missing(value) or is_nan(value):
        if source.policies.none == "error":
            raise source.no_value(row, value)
        return ()
    if not is_nested(value):
        raise source.error(row, f"expected a list of {source.feature.dtype}, got {shown(value)}")
    if rest or isinstance(value, np.ndarray):
        got = list_shape(value)
        if len(value) and (got is None or got[1:] != rest):
            seen = "lists of unequal length" if got is None else f"shape {list(got)}"
            wanted = f"{source.feature.dtype} of shape [{', '.join(['any', *map(str, rest)])}]"
            raise source.error(row, f"expected {wanted}, got {seen}")
    return value


def _converted(source: Source, rows: list[Any], lengths: Array) -> Array:
    """The converted values of all rows, in one flat array."""
    # Empty rows may be float arrays, which would turn other rows' integers into floats.
    flat = flattened([row for row in rows if len(row)], 1 + len(_rest(source.feature)))
    ends = np.cumsum(lengths) * int(np.prod(_rest(source.feature), dtype=np.int64))
    fault = source.fault(lambda position: int(np.searchsorted(ends, position, side="right")))
    return flat_array(flat, source.feature.dtype, None, fault, source.policies)


def _equal_lists(source: Source, values: Array) -> Column:
    """An array [rows, length, ...]: every row's list has the same length."""
    rest = _rest(source.feature)
    if values.ndim < 2 or values.shape[2:] != rest:
        expected = ", ".join(["rows", "values", *map(str, rest)])
        raise source.error(None, f"expected shape [{expected}], got {list(values.shape)}")
    width = max(int(values[:1].size), 1)
    fault = source.fault(lambda position: position // width)
    flat = flat_array(values.reshape(-1), source.feature.dtype, None, fault, source.policies)
    lengths = np.full(len(values), values.shape[1], np.int64)
    return Column(
        flat.reshape(values.shape), lengths if source.feature.kind is Kind.MULTI else None
    )


def _padding(feature: Feature) -> Any:
    """The padding of shorter lists: the feature's default, else zero or empty."""
    if feature.kind is Kind.SEQUENCE and feature.default is not None and feature.default.size:
        return stored(feature, feature.default).reshape(-1)[0]
    return b"" if feature.dtype is STRING else 0
