"""The safetensors format: named tensors in one file, after a header with their positions.

https://github.com/huggingface/safetensors: the header's length (8 bytes, little endian), the header
(JSON), then the tensors one after another.
"""

import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

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
_FORMAT_VERSION = "1"
_ALIGNMENT = 8
_CHUNK_BYTES = 1 << 22


class ItemTableError(Exception):
    """A table, model or source is malformed; the message names the file.

    A value that does not fit raises a `colcast.client.InputError`, which names its feature and row.
    """


@contextmanager
def reading(what: object) -> Iterator[None]:
    """Turns errors that malformed content causes into an ItemTableError about `what`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ItemTableError(f"{what}: {type(error).__name__}: {error}") from error


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
    def storage(self) -> np.dtype[Any]:
        """NumPy's dtype of the elements."""
        return _STORAGE[self.dtype]

    @property
    def size(self) -> int:
        """The size in bytes."""
        return math.prod(self.shape) * self.storage.itemsize

    def array(self) -> Array:
        """The values, mapped from the file that contains them."""
        if not self.size:
            return np.empty(self.shape, self.storage)
        assert isinstance(self.data, Path)
        return np.asarray(np.memmap(self.data, self.storage, "r", shape=self.shape))

    @classmethod
    def of(cls, name: str, array: Array, dtype: str = "") -> "Tensor":
        """An array as a tensor, by default with the array's own dtype."""
        data = np.ascontiguousarray(array).view(np.uint8).data
        return cls(name, DTYPES[dtype or array.dtype.name], array.shape, data)


def write_container(
    path: Path, file_format: str, metadata: Mapping[str, str], tensors: Iterable[Tensor]
) -> None:
    """Writes a new file and syncs it to disk.

    The metadata also gets the format, the time, and the checksum: XXH3-64 of all bytes after the
    header, as 16 hex digits.
    """
    ordered = sorted(tensors, key=lambda one: (-one.storage.itemsize, one.name))
    checksum = xxhash.xxh3_64()
    declared = {"format": file_format, "format_version": _FORMAT_VERSION}
    metadata = {**metadata, **declared, "created": str(int(time.time()))}
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


class Container:
    """A file, mapped into memory.

    Attributes:
        path: the file.
        metadata: name -> text.
        tensors: arrays mapped from the file; bfloat16 values are uint16.
    """

    def __init__(self, path: Path, file_format: str) -> None:
        """Reads the header."""
        self.path = path
        try:
            # Converts to a plain array, since slicing a memmap is slow.
            content: Array = np.asarray(np.memmap(path, np.uint8, "r"))
        except (OSError, ValueError) as error:  # ValueError: an empty file
            raise ItemTableError(f"cannot read {path}: {error}") from None
        size = int.from_bytes(content[:8].tobytes(), "little")
        if size > len(content) - 8:
            message = f"the header claims {size} bytes, but the file has {len(content)}"
            raise ItemTableError(f"{path}: {message}")
        with reading(f"{path}: the header is not a JSON object"):
            header = dict(json.loads(content[8 : 8 + size].tobytes()))
        self._data = content[8 + size :]
        self.metadata: Mapping[str, str] = header.pop("__metadata__", {})
        self.tensors = {name: self._tensor(name, entry) for name, entry in header.items()}
        expected = file_format, _FORMAT_VERSION
        got = tuple(self.metadata.get(name) for name in ("format", "format_version"))
        if got != expected:
            raise ItemTableError(f"{path}: expected format and version {expected}, got {got}")

    def verify(self) -> None:
        """Reads the whole file; ItemTableError if its checksum does not match."""
        digest = xxhash.xxh3_64()
        for chunk in _chunks(self._data.data):
            digest.update(chunk)
        expected, found = self.metadata.get("checksum"), digest.hexdigest()
        if expected != found:
            message = f"checksum {found}, expected {expected}: it was changed or truncated"
            raise ItemTableError(f"{self.path}: {message}")

    def _tensor(self, name: str, entry: Any) -> Array:
        with reading(f"{self.path}: tensor {name!r}, {entry}"):
            start, end = entry["data_offsets"]
            values = self._data[start:end].view(_STORAGE[entry["dtype"]])
            return values.reshape(tuple(entry["shape"]))


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
