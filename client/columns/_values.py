"""Converts a flat run of Python or NumPy values to a checked array of a feature's dtype.

One pass finds the types in a list (`set(map(type, values))`), so a valid list is converted in bulk;
only a list with a mistake is searched for its position.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
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


Fault = Callable[[int, str], InputError]
"""Makes the error for the value at a position of a flat run of values."""


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
    values: Sequence[Any] | Array, dtype: DType, default: Any, fault: Fault, policies: Policies
) -> Array:
    """Converts values [n] to an array [n] in `dtype.storage`.

    Args:
        values: a list, or an array of any NumPy dtype.
        dtype: the dtype the model declares.
        default: the value for missing ones; None makes a missing value an error.
        fault: makes the error for a position in `values`.
        policies: what counts as missing.
    """
    array = values
    if isinstance(values, np.ndarray) and values.dtype.kind in "OTV":
        array = values.tolist()
    gaps = _missing(array, dtype, fault, policies)
    finite = policies.nan != "send"
    if not gaps:
        return _convert(array, dtype, fault, finite)
    if default is None or policies.none == "error":
        raise fault(gaps[0], no_value(values[gaps[0]], dtype, policies))
    kept = np.ones(len(array), bool)
    kept[gaps] = False
    result = np.empty(len(array), dtype.storage)
    result[gaps] = default
    positions = np.flatnonzero(kept)
    present = (
        array[kept] if isinstance(array, np.ndarray) else [array[i] for i in positions.tolist()]
    )
    result[kept] = _convert(
        present, dtype, lambda at, message: fault(int(positions[at]), message), finite
    )
    return result


def _missing(
    values: Sequence[Any] | Array, dtype: DType, fault: Fault, policies: Policies
) -> list[int]:
    """The positions of values that count as missing."""
    floats = dtype.kind == "f"
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "M":
            raise fault(0, f"expected {dtype}, got dates ({values.dtype})")
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


def _convert(values: Sequence[Any] | Array, dtype: DType, fault: Fault, finite: bool) -> Array:
    if not len(values):  # an empty array's dtype says nothing
        return np.empty(0, dtype.storage)
    if dtype is STRING:
        return _strings(values, fault)
    array = values if isinstance(values, np.ndarray) else _numbers(values, dtype, fault)
    kind, wanted = array.dtype.kind, dtype.kind
    if finite and wanted == kind == "f":
        _require_finite(array, dtype, fault)
    if wanted == "b":
        _require(kind == "b", array, dtype, fault)
        return array
    if wanted in "iu":
        _require(kind in "iufb", array, dtype, fault)
        return _integers(array, dtype, fault)
    _require(kind in "iufb", array, dtype, fault)
    return _floats(array, dtype, fault)


def _require(fits: bool, array: Array, dtype: DType, fault: Fault) -> None:
    if not fits:
        got = array[0].item() if array.size else array.dtype
        raise fault(0, f"expected {dtype}, got {shown(got)}")


def _require_finite(array: Array, dtype: DType, fault: Fault) -> None:
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        first = int(bad[0])
        raise fault(
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


def _numbers(values: Sequence[Any], dtype: DType, fault: Fault) -> Array:
    """A list of numbers as the widest array that holds them exactly."""
    allowed = _NUMBER_TYPES[dtype.kind]
    if not all(issubclass(t, allowed) for t in set(map(type, values))):
        bad = next(i for i, v in enumerate(values) if not isinstance(v, allowed))
        raise fault(bad, f"expected {dtype}, got {shown(values[bad])}")
    array = np.array(values)
    if dtype.kind in "iu" and array.dtype.kind in "fO":
        return _integers(values, dtype, fault)
    return array if array.dtype.kind != "O" else _huge_floats(values, dtype, fault)


def _huge_floats(values: Sequence[Any], dtype: DType, fault: Fault) -> Array:
    result = np.empty(len(values), np.float64)
    for i, value in enumerate(values):
        try:
            result[i] = value
        except OverflowError:
            raise fault(i, f"{shown(value)} is too large for {dtype}") from None
    return result


def _no_integer(value: Any, dtype: DType) -> str:
    """Why a number is not an integer of this dtype; empty if it is one."""
    is_float = isinstance(value, _FLOATS)
    if is_float and not float(value).is_integer():
        return f"expected {dtype}, got {shown(value)}"
    bounds = np.iinfo(dtype.storage)
    if not bounds.min <= int(value) <= bounds.max:
        return f"{value} is out of the range of {dtype} [{bounds.min}, {bounds.max}]"
    # From this size on, the float may be the rounded form of another integer.
    if is_float and abs(float(value)) >= 2 ** (np.finfo(type(value)).nmant + 1):
        return (
            f"expected {dtype}, got {shown(value)}, perhaps rounded; pass integers (pandas: Int64)"
        )
    return ""


def _integers(values: Sequence[Any] | Array, dtype: DType, fault: Fault) -> Array:
    """Integers, also among floats; NumPy would round those beyond 64 bits or next to floats."""
    bounds = np.iinfo(dtype.storage)
    if isinstance(values, np.ndarray):
        if np.can_cast(values.dtype, dtype.storage):
            return values.astype(dtype.storage, copy=False)
        if values.dtype.kind == "f":
            largest = min(2 ** (np.finfo(values.dtype).nmant + 1), bounds.max)
            fits = (values == np.floor(values)) & (np.abs(values) < largest)
            fits &= values >= bounds.min
        else:
            fits = bounds.min <= int(values.min()) and int(values.max()) <= bounds.max
        if np.all(fits):
            return values.astype(dtype.storage)
        values = list(values)
    for i, value in enumerate(values):
        if message := _no_integer(value, dtype):
            raise fault(i, message)
    return np.array([int(value) for value in values], dtype.storage)


def _floats(array: Array, dtype: DType, fault: Fault) -> Array:
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
            raise fault(first, f"{shown(array[first])} is too large for {dtype}")
    return result


def _strings(values: Sequence[Any] | Array, fault: Fault) -> Array:
    """Strings in an object array: text as UTF-8, bytes unchanged."""
    if isinstance(values, np.ndarray):
        _require(values.dtype.kind in "SU", values, STRING, fault)
        values = values.tolist()
    types = set(map(type, values))
    if types <= {bytes}:
        return object_array(values)
    if types == {str}:
        with contextlib.suppress(UnicodeEncodeError):
            return object_array(list(map(str.encode, values)))
    return object_array([_bytes(i, value, fault) for i, value in enumerate(values)])


def _bytes(position: int, value: Any, fault: Fault) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise fault(position, f"expected string, got text with {error.reason}") from None
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise fault(position, f"expected string, got {shown(value)}")
