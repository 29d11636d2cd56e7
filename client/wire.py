"""The protobuf wire format: variable-length integers, length-delimited fields, a field reader.

https://protobuf.dev/programming-guides/encoding/
"""

from collections.abc import Iterator

import numpy as np
from colcast.client._errors import DecodeError
from colcast.client.columns._dtypes import Array

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

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


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Decodes the varint at a position; returns its value and the position after it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise DecodeError(f"a varint is cut off or too long at byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7


def signed(value: int) -> int:
    """The int64 whose two's complement is this unsigned 64-bit value."""
    return value - (1 << 64) if value >> 63 else value


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yields a message's fields: (number, wire type, value); a varint is an int, others are bytes.

    Raises:
        DecodeError: the message is truncated or holds an unknown wire type.
    """
    at, end = 0, len(data)
    while at < end:
        tag, at = read_varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == VARINT:
            value, at = read_varint(data, at)
            yield number, wire_type, value
            continue
        if wire_type == BYTES:
            size, at = read_varint(data, at)
        elif wire_type in (FIXED32, FIXED64):
            size = 4 if wire_type == FIXED32 else 8
        else:
            raise DecodeError(f"field {number} has wire type {wire_type} at byte {at}")
        if size > end - at:
            raise DecodeError(f"field {number} claims {size} bytes, but {end - at} remain")
        yield number, wire_type, data[at : at + size]
        at += size


def map_entry(data: bytes) -> tuple[str, bytes]:
    """Decodes a map entry with a text key; returns the key and the value's bytes."""
    key, content = "", b""
    for number, _, value in fields(data):
        if number == 1:
            key = text(number, value)
        elif number == 2:
            content = message(number, value)
    return key, content


def messages(data: bytes, wanted: int) -> Iterator[bytes]:
    """The contents of the length-delimited fields with this number, in order."""
    return (message(number, value) for number, _, value in fields(data) if number == wanted)


def message(number: int, value: int | bytes) -> bytes:
    """The bytes of a length-delimited field; DecodeError if the value is an integer."""
    if isinstance(value, int):
        raise DecodeError(f"field {number} is an integer where a message belongs")
    return value


def integer(number: int, value: int | bytes) -> int:
    """The value of a varint field; DecodeError if the value is bytes."""
    if isinstance(value, bytes):
        raise DecodeError(f"field {number} is a message where an integer belongs")
    return value


def text(number: int, value: int | bytes) -> str:
    """The text of a string field; DecodeError if it is not UTF-8."""
    try:
        return message(number, value).decode()
    except UnicodeDecodeError:
        raise DecodeError(f"field {number} is not UTF-8 text") from None
