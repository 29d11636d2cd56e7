"""TensorFlow's dtypes on the wire."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from colcast.client._errors import InputError, UnknownDtypeError

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class DType:
    """One dtype of a TensorProto.

    Attributes:
        number: its value in the proto enum `tensorflow.DataType`.
        name: TensorFlow's name for it.
        storage: the little-endian NumPy dtype whose bytes are its tensor_content; object
            (holding bytes) for strings, the 16 raw bits for bfloat16.
        typed_field: the number of the TensorProto field that holds its values one by one.
    """

    number: int
    name: str
    storage: np.dtype[Any]
    typed_field: int

    @property
    def kind(self) -> str:
        """NumPy's kind code of its values: b, i, u, f, or O for strings."""
        return "f" if self.name == "bfloat16" else self.storage.kind

    def __str__(self) -> str:
        return self.name


TYPED_FIELDS = {
    5: "float_val",
    6: "double_val",
    7: "int_val",
    8: "string_val",
    10: "int64_val",
    11: "bool_val",
    13: "half_val",  # the bits of both 16-bit floats
    16: "uint32_val",
    17: "uint64_val",
}
"""The fields of a TensorProto that hold values one by one."""


def _dtype(number: int, name: str, storage: str, typed_field: int) -> DType:
    return DType(number, name, np.dtype(storage), typed_field)


FLOAT = _dtype(1, "float32", "<f4", 5)
INT32 = _dtype(3, "int32", "<i4", 7)
STRING = _dtype(7, "string", "O", 8)
INT64 = _dtype(9, "int64", "<i8", 10)
BOOL = _dtype(10, "bool", "?", 11)
BFLOAT16 = _dtype(14, "bfloat16", "<u2", 13)

_ALL = (
    FLOAT,
    _dtype(2, "float64", "<f8", 6),
    INT32,
    _dtype(4, "uint8", "u1", 7),
    _dtype(5, "int16", "<i2", 7),
    _dtype(6, "int8", "i1", 7),
    STRING,
    INT64,
    BOOL,
    BFLOAT16,
    _dtype(17, "uint16", "<u2", 7),
    _dtype(19, "float16", "<f2", 13),
    _dtype(22, "uint32", "<u4", 16),
    _dtype(23, "uint64", "<u8", 17),
)
BY_NUMBER = {dtype.number: dtype for dtype in _ALL}
BY_NAME = {dtype.name: dtype for dtype in _ALL}
_OF_NUMPY = {BY_NAME[name].storage: BY_NAME[name] for name in ("int64", "float32", "float64")}


def dtype_of_number(number: int) -> DType:
    """The dtype with this number in the proto enum.

    Raises:
        UnknownDtypeError: it is complex or quantized, has no plain values (resource, variant), or
            is newer than this client.
    """
    found = BY_NUMBER.get(number)
    if found is None:
        raise UnknownDtypeError(f"dtype number {number} is not one this client can send or read")
    return found


def dtype_of_array(values: Array) -> DType:
    """The dtype under which an array is sent when no signature determines it."""
    if values.dtype.kind in "OSUT":
        return STRING
    found = _OF_NUMPY.get(values.dtype) or BY_NAME.get(values.dtype.name)
    if found is None:
        raise InputError(f"NumPy dtype {values.dtype} has no counterpart in TensorFlow")
    return found


def bfloat16_bits(values: Array) -> Array:
    """Rounds float32 values [...] to bfloat16, ties to even; returns the bits as uint16 [...]."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def bfloat16_values(bits: Array) -> Array:
    """Converts bfloat16 bits, uint16 [...], to the same values in float32 [...]."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
