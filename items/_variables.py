"""The variables of a SavedModel, read without TensorFlow."""

import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import xxhash
from colcast.client import DTYPES, DecodeError, DType
from colcast.client.messages import parse, shape_of
from colcast.items._container import ItemTableError
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
    for meta_graph in parse("SavedModel", model).meta_graphs:
        graph = meta_graph.graph_def
        functions = (function.node_def for function in graph.library.function)
        for node in chain(graph.node, *functions):
            if node.op == "VarHandleOp":
                dtype = _DTYPES.get(node.attr["dtype"].type)
                sizes = shape_of(node.attr["shape"].shape)
                if dtype is not None and sizes is not None and None not in sizes:
                    shape = tuple(int(size or 0) for size in sizes)
                    yield Variable(node.attr["shared_name"].s.decode(), dtype, shape)
