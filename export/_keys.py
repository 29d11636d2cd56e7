"""What a model knows by name: the constants that may be keys of its tables, its vocabularies."""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

_MOST = 400  # keys kept of each dtype
_MOST_BYTES = 1 << 20  # read of a constant or a file
_LONGEST = 64  # bytes of a string that looks like a key


@dataclasses.dataclass(frozen=True)
class Keys:
    """Values that a model may treat differently from unknown ones."""

    ints: tuple[int, ...] = ()
    strings: tuple[bytes, ...] = ()


def find_keys(meta_graph: Any, assets: Path) -> Keys:
    """Collects integer and string constants of a MetaGraphDef and the lines of its asset files."""
    ints: dict[int, None] = {}
    strings: dict[bytes, None] = {}
    for values in _constants(meta_graph.graph_def):
        if values.dtype == object:
            strings.update(dict.fromkeys(v for v in _some(values) if len(v) <= _LONGEST))
        else:
            ints.update(dict.fromkeys(int(v) for v in _some(values)))
    for line in _lines(assets):
        strings[line] = None
        if line.removeprefix(b"-").isdigit() and len(line) <= 18:
            ints[int(line)] = None
    return Keys(tuple(_some(list(ints))), tuple(_some(list(strings))))


def _constants(graph_def: Any) -> Iterator[Any]:
    nodes: Iterable[Any] = [
        *graph_def.node,
        *(node for function in graph_def.library.function for node in function.node_def),
    ]
    for node in nodes:
        if node.op != "Const":
            continue
        tensor = node.attr["value"].tensor
        if tensor.ByteSize() > _MOST_BYTES or not tensor.tensor_shape.dim:
            continue
        if tensor.dtype in (tf.string.as_datatype_enum, tf.int64.as_datatype_enum):
            yield tf.make_ndarray(tensor).reshape(-1)


def _lines(assets: Path) -> Iterator[bytes]:
    for file in sorted(assets.rglob("*")) if assets.is_dir() else ():
        if file.is_file():
            with file.open("rb") as stream:
                head = stream.read(_MOST_BYTES)
            yield from _some([line for line in head.splitlines() if 0 < len(line) <= _LONGEST])


def _some(values: Any) -> list[Any]:
    """No more than `_MOST` of the values, taken from all over."""
    step = max(1, -(-len(values) // _MOST))
    return list(np.asarray(values, dtype=object)[::step])
