"""Writes the protobuf wire format: variable-length integers and length-delimited fields.

https://protobuf.dev/programming-guides/encoding/
"""

import numpy as np
from colcast.client._errors import DecodeError
from colcast.client.columns._dtypes import Array

VARINT, BYTES = 0, 2

_ONE_BYTE = [bytes([i]) for i in range(128)]


def varint(value: int) -> bytes:
    """An integer below 2^64 as a base-128 varint; negatives as 64-bit two's complement."""
    if 0 <= value < 128:
        return _ONE_BYTE[value]
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    """Encodes a length-delimited field: tag, length, content."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def integer_field(number: int, value: int) -> bytes:
    """Encodes a varint field: tag, value."""
    return varint(number << 3 | VARINT) + varint(value)


def read_varints(data: bytes) -> Array:
    """Decodes consecutive varints to uint64 [n], without a loop over values.

    Raises:
        DecodeError: the last one is truncated, or one is longer than 10 bytes.
    """
    raw = np.frombuffer(data, np.uint8)
    if raw.size == 0:
        return np.empty(0, np.uint64)
    last = raw < 128
    if not last[-1]:
        raise DecodeError("the last packed integer is truncated")
    ends = np.flatnonzero(last)
    starts = np.concatenate(([0], ends[:-1] + 1))
    if (ends - starts).max() > 9:
        raise DecodeError("a packed integer is longer than 10 bytes")
    shifts = 7 * (np.arange(raw.size) - np.repeat(starts, ends - starts + 1))
    return np.add.reduceat((raw & 127).astype(np.uint64) << shifts.astype(np.uint64), starts)
