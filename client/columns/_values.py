"""Converts a flat run of Python or NumPy values to a checked array of a feature's dtype.

One pass finds the types in a list (`set(map(type, values))`), so a valid list is converted in bulk;
only a list with a mistake is searched for its position.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from colcast.client._errors import InputError
from colcast.client._settings import Policies
from colcast.client.columns._dtypes import (
    BFLOAT16,
    STRING,
    Array,
    DType,
    bfloat16_bits,
    bfloat16_values,
)

NOT_GIVEN: Any = type("NotGiven", (), {"__repr__": lambda self: "nothing"})()

_MISSING_TYPES = ("NoneType", "NotGiven", "NAType", "NaTType")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a flat run of values came from; makes the error for the value at a position."""

    error: Callable[[int, str], InputError]

    def of(self, positions: Array) -> "Place":
        """The place of the values at these positions."""
        return Place(lambda position, message: self.error(int(positions[position]), message))


def shown(value: Any) -> str:
    """A value and its type, shortened for a message."""
    value = value.item() if isinstance(value, np.generic) else value
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def no_value(value: Any, dtype: DType, policies: Policies) -> str:
    """The message for a missing value that has no default."""
    reason = "none='error'" if policies.none == "error" else "the model has no default for it"
    return f"expected {dtype}, got {'nothing' if value is NOT_GIVEN else shown(value)}; {reason}"


def object_array(values: Sequence[Any] | Array) -> Array:
    """Puts values [n] unconverted into an object array [n]."""
    result = np.empty(len(values), object)
    result[:] = values
    return result


def refuse_masked(name: str, array: Any) -> None:
    """Raises InputError for NumPy's masked arrays, whose hidden values must not be sent."""
    if hasattr(array, "mask"):
        raise InputError("is a masked array; pass a list with None, or filled()", feature=name)


def is_missing(value: Any) -> bool:
    """Whether a value counts as missing: None, pandas' NA and NaT, or an absent key."""
    return type(value).__name__ in _MISSING_TYPES


def is_nan(value: Any) -> bool:
    """Whether a value is NaN, pandas' mark for a missing list."""
    return isinstance(value, _FLOATS) and math.isnan(value)


def entries_of(values: Any) -> Any:
    """Turns an array of nothing but NaN, pandas' mark of missing lists, into a list."""
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind != "f":
        return values
    return values.tolist() if np.isnan(values).all() else values


def flat_array(
    values: Sequence[Any] | Array, dtype: DType, default: Any, place: Place, policies: Policies
) -> Array:
    """Converts values [n] to an array [n] in `dtype.storage`.

    Args:
        values: a list, or an array of any NumPy dtype.
        dtype: the dtype the model declares.
        default: the value for missing ones; None makes a missing value an error.
        place: the origin of the values.
        policies: what counts as missing.

    Raises:
        InputError: a value has another type, is out of the dtype's range, or is missing; names the
            first such value's row.
    """
    array = values
    if isinstance(values, np.ndarray) and values.dtype.kind in "OTV":
        array = values.tolist()
    gaps = _missing(array, dtype, place, policies)
    finite = policies.nan != "send"
    if not gaps:
        return _convert(array, dtype, place, finite)
    if default is None or policies.none == "error":
        raise place.error(gaps[0], no_value(values[gaps[0]], dtype, policies))
    kept = np.ones(len(array), bool)
    kept[gaps] = False
    result = np.empty(len(array), dtype.storage)
    result[gaps] = default
    positions = np.flatnonzero(kept)
    present = (
        array[kept] if isinstance(array, np.ndarray) else [array[i] for i in positions.tolist()]
    )
    result[kept] = _convert(present, dtype, place.of(positions), finite)
    return result


def _missing(
    values: Sequence[Any] | Array, dtype: DType, place: Place, policies: Policies
) -> list[int]:
    """The positions of values that count as missing."""
    floats = dtype.kind == "f"
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "M":
            raise place.error(0, f"expected {dtype}, got dates ({values.dtype})")
        nan = np.flatnonzero(np.isnan(values)).tolist() if values.dtype.kind == "f" else []
        return [] if floats and policies.nan != "default" else nan
    types = set(map(type, values))
    gaps: list[int] = []
    if not {t.__name__ for t in types}.isdisjoint(_MISSING_TYPES):
        gaps = [i for i, v in enumerate(values) if is_missing(v)]
    if (floats and policies.nan != "default") or not any(issubclass(t, _FLOATS) for t in types):
        return gaps
    return sorted(gaps + [i for i, v in enumerate(values) if is_nan(v)])


_FLOATS = (float, np.floating)


def _convert(values: Sequence[Any] | Array, dtype: DType, place: Place, finite: bool) -> Array:
    if not len(values):  # an empty array's dtype says nothing
        return np.empty(0, dtype.storage)
    if dtype is STRING:
        return _strings(values, place)
    array = values if isinstance(values, np.ndarray) else _numbers(values, dtype, place)
    kind, wanted = array.dtype.kind, dtype.kind
    if finite and wanted == kind == "f":
        _require_finite(array, dtype, place)
    if wanted == "b":
        _require(kind == "b", array, dtype, place)
        return array
    if wanted in "iu":
        _require(kind in "iufb", array, dtype, place)
        return _integers(array, dtype, place)
    _require(kind in "iufb", array, dtype, place)
    return _floats(array, dtype, place)


def _require(fits: bool, array: Array, dtype: DType, place: Place) -> None:
    if not fits:
        got = array[0].item() if array.size else array.dtype
        raise place.error(0, f"expected {dtype}, got {shown(got)}")


def _require_finite(array: Array, dtype: DType, place: Place) -> None:
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        first = int(bad[0])
        raise place.error(
            first,
            f"expected a finite {dtype}, got {shown(array[first])}: most models score it wrongly; "
            "for one that accepts it, such as a decision forest: Policies(nan='send')",
        )


_NUMBER_TYPES: dict[str, tuple[type, ...]] = {
    "b": (bool, np.bool_),
    "i": (int, float, np.integer, np.floating, np.bool_),
    "u": (int, float, np.integer, np.floating, np.bool_),
    "f": (int, float, np.integer, np.floating, np.bool_),
}


def _numbers(values: Sequence[Any], dtype: DType, place: Place) -> Array:
    """A list of numbers as the widest array that holds them exactly."""
    allowed = _NUMBER_TYPES[dtype.kind]
    if not all(issubclass(t, allowed) for t in set(map(type, values))):
        bad = next(i for i, v in enumerate(values) if not isinstance(v, allowed))
        raise place.error(bad, f"expected {dtype}, got {shown(values[bad])}")
    array = np.array(values)
    if dtype.kind in "iu" and array.dtype.kind in "fO":
        return _exact_integers(values, dtype, place)
    return array if array.dtype.kind != "O" else _huge_floats(values, dtype, place)


def _exact_integers(values: Sequence[Any], dtype: DType, place: Place) -> Array:
    """Converts integers among floats or beyond 64 bits one by one; NumPy would round them."""
    for i, value in enumerate(values):
        if isinstance(value, _FLOATS) and not float(value).is_integer():
            raise place.error(i, f"expected {dtype}, got {shown(value)}")
        if not _fits(int(value), dtype):
            raise place.error(i, _out_of_range(int(value), dtype))
        if isinstance(value, _FLOATS) and abs(float(value)) >= _inexact_from(type(value)):
            raise place.error(i, _inexact(value, dtype))
    return np.array([int(value) for value in values], dtype.storage)


def _huge_floats(values: Sequence[Any], dtype: DType, place: Place) -> Array:
    result = np.empty(len(values), np.float64)
    for i, value in enumerate(values):
        try:
            result[i] = value
        except OverflowError:
            raise place.error(i, f"{shown(value)} is too large for {dtype}") from None
    return result


def _fits(value: int, dtype: DType) -> bool:
    bounds = np.iinfo(dtype.storage)
    return bounds.min <= value <= bounds.max


def _out_of_range(value: Any, dtype: DType) -> str:
    bounds = np.iinfo(dtype.storage)
    return f"{value} is out of the range of {dtype} [{bounds.min}, {bounds.max}]"


def _inexact_from(float_type: Any) -> int:
    """The smallest integer that may have been rounded when it became such a float."""
    return int(2 ** (np.finfo(float_type).nmant + 1))


def _inexact(value: Any, dtype: DType) -> str:
    return f"expected {dtype}, got {shown(value)}, perhaps rounded; pass integers (pandas: Int64)"


def _integers(array: Array, dtype: DType, place: Place) -> Array:
    if np.can_cast(array.dtype, dtype.storage):
        return array.astype(dtype.storage, copy=False)
    if array.dtype.kind == "f":
        broken = np.flatnonzero(array != np.floor(array))
        if broken.size:
            raise place.error(
                int(broken[0]), f"expected {dtype}, got {shown(array[broken[0]].item())}"
            )
    bounds = np.iinfo(dtype.storage)
    if array.dtype.kind == "f":
        outside = (array < float(bounds.min)) | (array >= float(bounds.max) + 1)
    else:
        outside = np.array([], bool)
        if array.size and not (bounds.min <= int(array.min()) and int(array.max()) <= bounds.max):
            outside = np.array([not _fits(int(v), dtype) for v in array])
    if outside.any():
        first = int(np.flatnonzero(outside)[0])
        raise place.error(first, _out_of_range(array[first].item(), dtype))
    if array.dtype.kind == "f":
        inexact = np.flatnonzero(np.abs(array) >= _inexact_from(array.dtype))
        if inexact.size:
            raise place.error(int(inexact[0]), _inexact(array[inexact[0]], dtype))
    return array.astype(dtype.storage)


def _floats(array: Array, dtype: DType, place: Place) -> Array:
    with np.errstate(over="ignore"):
        if dtype is BFLOAT16:
            result = bfloat16_bits(array.astype(np.float32))
            stored = bfloat16_values(result)
        else:
            result = stored = array.astype(dtype.storage, copy=False)
    if not np.can_cast(array.dtype, stored.dtype) or dtype is BFLOAT16:
        lost = np.flatnonzero(np.isinf(stored) & np.isfinite(array))
        if lost.size:
            first = int(lost[0])
            raise place.error(first, f"{shown(array[first])} is too large for {dtype}")
    return result


def _strings(values: Sequence[Any] | Array, place: Place) -> Array:
    """Strings in an object array: text as UTF-8, bytes unchanged."""
    if isinstance(values, np.ndarray):
        _require(values.dtype.kind in "SU", values, STRING, place)
        values = values.tolist()
    types = set(map(type, values))
    if types <= {bytes}:
        return object_array(values)
    if types == {str}:
        with contextlib.suppress(UnicodeEncodeError):
            return object_array(list(map(str.encode, values)))
    return object_array([_bytes(i, value, place) for i, value in enumerate(values)])


def _bytes(position: int, value: Any, place: Place) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise place.error(position, f"expected string, got text with {error.reason}") from None
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise place.error(position, f"expected string, got {shown(value)}")
