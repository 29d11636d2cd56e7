"""The variables of a SavedModel, read without TensorFlow."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import xxhash
from colcast.client import DTYPES, DecodeError, DType
from colcast.client.wire import fields, integer, map_entry, message, signed, text
from colcast.items._errors import ItemTableError
from colcast.items._publish import newest

# The format of a delta of embedding rows, and the folder of a model's deltas.
ROWS_FORMAT, DELTA_FOLDER = "colcast-rows", "deltas"

_DTYPES = {dtype.number: dtype for dtype in DTYPES.values()}
_MODEL, _INDEX = "saved_model.pb", "variables/variables.index"


class Variable(NamedTuple):
    """A variable whose shape is known."""

    name: str
    dtype: DType
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The size in bytes."""
        return math.prod(self.shape) * self.dtype.storage.itemsize


def version_of(model: Path, version: int | None = None) -> Path:
    """The SavedModel in a folder: the folder itself, or a version in it; None for the newest."""
    if version is None:
        folder = model if (model / _MODEL).exists() else newest(model)
    else:
        folder = model / str(version)
    for file in (_MODEL, _INDEX):
        if not (folder / file).exists():
            raise ItemTableError(f"{folder} has no {file}: expected a SavedModel")
    return folder


def variables_of(folder: Path) -> dict[str, Variable]:
    """The variables of a SavedModel, by the names that the server uses."""
    try:
        found = {one.name: one for one in _variables((folder / _MODEL).read_bytes())}
    except DecodeError as error:
        raise ItemTableError(f"{folder / _MODEL} is not a SavedModel: {error}") from None
    return dict(sorted(found.items()))


def checkpoint_of(folder: Path) -> str:
    """Identifies a checkpoint: XXH3-64 of its index, which has every tensor's checksum."""
    return xxhash.xxh3_64_hexdigest((folder / _INDEX).read_bytes())


def _variables(model: bytes) -> Iterator[Variable]:
    # The fields meta_graphs and graph_def, then node, or library, function and node_def.
    for graph in _messages(model, 2, 2):
        for path in ((1,), (2, 1, 3)):
            for node in _messages(graph, *path):
                variable = _variable(node)
                if variable is not None:
                    yield variable


def _messages(data: bytes, *path: int) -> Iterator[bytes]:
    """The messages at a path of field numbers."""
    for number, _, value in fields(data):
        if number == path[0]:
            inner = message(number, value)
            yield from _messages(inner, *path[1:]) if len(path) > 1 else (inner,)


def _variable(node: bytes) -> Variable | None:
    """The node's variable; None if it has none, or if the variable's dtype or shape is unknown."""
    if next(_messages(node, 2), None) != b"VarHandleOp":  # the field op
        return None
    name, dtype, shape = "", None, None
    for attribute, content in map(map_entry, _messages(node, 5)):
        for number, _, value in fields(content):
            if attribute == "shared_name":
                name = text(number, value)
            elif attribute == "dtype":
                dtype = _DTYPES.get(integer(number, value))
            elif attribute == "shape":
                shape = _shape(message(number, value))
    return None if dtype is None or shape is None else Variable(name, dtype, shape)


def _shape(proto: bytes) -> tuple[int, ...] | None:
    """The shape; None if it is not completely known."""
    dims = []
    for number, _, value in fields(proto):
        if number == 3 and value:  # the field unknown_rank
            return None
        if number == 2:  # the field dim
            sizes = [signed(integer(n, v)) for n, _, v in fields(message(number, value)) if n == 1]
            dims.append(sizes[0] if sizes else 0)
    return None if min(dims, default=0) < 0 else tuple(dims)
