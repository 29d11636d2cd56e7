"""Reads TFRecord files without TensorFlow, safely even if a record claims a wrong length.

https://www.tensorflow.org/tutorials/load_data/tfrecord: a record consists of its length (8 bytes),
a checksum of the length (4), the data, and a checksum of the data (4), all little-endian.
"""

import gzip
import struct
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO, cast

_HEADER = struct.Struct("<QI")
_CHECKSUM_BYTES = 4
_PIECE = 1 << 20
_STDIN = Path("-")


def read_records(path: Path) -> Iterator[bytes]:
    """The records of a file, in order, without verifying the checksums of data.

    A file whose name ends in .gz is gzipped. The path "-" is standard input.

    Raises:
      ValueError: the file is not a TFRecord file, or ends within a record.
      OSError, EOFError, zlib.error: the file cannot be read or decompressed.
    """
    with _opened(path) as file:
        at = 0
        while header := file.read(_HEADER.size):
            length = _length(path, at, header)
            data = _read(file, length + _CHECKSUM_BYTES)
            if len(data) != length + _CHECKSUM_BYTES:
                raise ValueError(f"{path} ends within the record of {length} bytes at byte {at}")
            at += _HEADER.size + len(data)
            yield data[:length]


def _opened(path: Path) -> AbstractContextManager[BinaryIO]:
    if path == _STDIN:
        return nullcontext(sys.stdin.buffer)
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _read(file: BinaryIO, size: int) -> bytes:
    """Reads up to `size` bytes in blocks, so a wrong `size` does not allocate that much."""
    data = file.read(min(size, _PIECE))
    if len(data) < _PIECE or size == _PIECE:
        return data
    pieces = [data]
    while data and (size := size - len(data)):
        data = file.read(min(size, _PIECE))
        pieces.append(data)
    return b"".join(pieces)


def _length(path: Path, at: int, header: bytes) -> int:
    if len(header) == _HEADER.size:
        length, checksum = _HEADER.unpack(header)
        if checksum == _masked_crc32c(header[:8]):
            return int(length)
    raise ValueError(f"{path} is not an uncompressed TFRecord file: no record begins at byte {at}")


def _masked_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
