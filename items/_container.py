"""The safetensors format: named tensors in one file, after a header with their positions.

https://github.com/huggingface/safetensors: the header's length (8 bytes, little endian), the header
(JSON), then the tensors one after another.
"""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash
from colcast.items._errors import ItemTableError

Array = npt.NDArray[Any]

DTYPES = {
    "bool": "BOOL",
    "int8": "I8",
    "uint8": "U8",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "int64": "I64",
    "uint64": "U64",
    "float64": "F64",
}
"""TensorFlow's dtype name -> safetensors' dtype name."""

_STORAGE = {
    short: np.dtype("<u2" if name == "bfloat16" else name) for name, short in DTYPES.items()
}
_ALIGNMENT = 8
_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True)
class Tensor:
    """A tensor to write.

    Attributes:
        name: the tensor's name in the file.
        dtype: safetensors' name of the dtype.
        shape: its shape.
        data: its bytes, or a file that contains them.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes | memoryview | Path

    @property
    def size(self) -> int:
        """The size in bytes."""
        return math.prod(self.shape) * _STORAGE[self.dtype].itemsize

    @classmethod
    def of(cls, name: str, array: Array, dtype: str = "") -> "Tensor":
        """An array as a tensor, by default of the array's own dtype."""
        data = np.ascontiguousarray(array).view(np.uint8).data
        return cls(name, DTYPES[dtype or array.dtype.name], array.shape, data)


def write_container(path: Path, metadata: Mapping[str, str], tensors: Iterable[Tensor]) -> str:
    """Writes a new file to the disk, with its checksum in the metadata.

    Returns:
        The checksum: XXH3-64 of all bytes after the header, as 16 hex digits.
    """
    ordered = sorted(tensors, key=lambda one: (-_STORAGE[one.dtype].itemsize, one.name))
    checksum = xxhash.xxh3_64()
    with path.open("xb") as file:
        file.write(_header(metadata, "0" * 16, ordered))
        for tensor in ordered:
            for chunk in _chunks(tensor.data):
                checksum.update(chunk)
                file.write(chunk)
        file.seek(0)
        file.write(_header(metadata, checksum.hexdigest(), ordered))
        file.flush()
        os.fsync(file.fileno())
    return checksum.hexdigest()


class Container:
    """A file, mapped into memory.

    Attributes:
        path: the file.
        metadata: name -> text.
        tensors: arrays mapped from the file; bfloat16 values are uint16.
    """

    def __init__(self, path: Path) -> None:
        """Reads the header.

        Raises:
            ItemTableError: the file has another format; the message says where it is wrong.
        """
        self.path = path
        try:
            # A plain array, since slicing a memmap is slow.
            self._bytes: Array = np.asarray(np.memmap(path, np.uint8, "r"))
        except (OSError, ValueError) as error:  # ValueError: an empty file
            raise ItemTableError(f"cannot read {path}: {error}") from None
        self._data_at, header = self._read_header()
        self.metadata: Mapping[str, str] = header.pop("__metadata__", {})
        self.tensors = {name: self._tensor(name, entry) for name, entry in header.items()}

    def verify(self) -> None:
        """Reads the whole file; ItemTableError if its checksum does not match."""
        digest = xxhash.xxh3_64()
        for chunk in _chunks(self._bytes[self._data_at :].data):
            digest.update(chunk)
        expected, found = self.metadata.get("checksum"), digest.hexdigest()
        if expected != found:
            message = f"checksum {found}, expected {expected}: it was changed or truncated"
            raise ItemTableError(f"{self.path}: {message}")

    def _read_header(self) -> tuple[int, dict[str, Any]]:
        size = int.from_bytes(self._bytes[:8].tobytes(), "little")
        if size > len(self._bytes) - 8:
            message = f"the header claims {size} bytes, but the file has {len(self._bytes)}"
            raise ItemTableError(f"{self.path}: {message}")
        try:
            header = json.loads(self._bytes[8 : 8 + size].tobytes())
            return 8 + size, dict(header)
        except (ValueError, TypeError) as error:
            raise ItemTableError(f"{self.path}: the header is not a JSON object: {error}") from None

    def _tensor(self, name: str, entry: Any) -> Array:
        try:
            storage, shape = _STORAGE[entry["dtype"]], tuple(entry["shape"])
            start, end = entry["data_offsets"]
            data = self._bytes[self._data_at + start : self._data_at + end]
            return data.view(storage).reshape(shape)
        except (KeyError, TypeError, ValueError) as error:
            raise ItemTableError(f"{self.path}: tensor {name!r}, {entry}: {error}") from None


def _header(metadata: Mapping[str, str], checksum: str, tensors: Iterable[Tensor]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {**metadata, "checksum": checksum}}
    at = 0
    for one in tensors:
        offsets = [at, at + one.size]
        header[one.name] = {"dtype": one.dtype, "shape": one.shape, "data_offsets": offsets}
        at += one.size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def _chunks(data: bytes | memoryview | Path) -> Iterator[bytes | memoryview]:
    if isinstance(data, Path):
        with data.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
        data.unlink()
        return
    for at in range(0, len(data), _CHUNK_BYTES):
        yield data[at : at + _CHUNK_BYTES]
