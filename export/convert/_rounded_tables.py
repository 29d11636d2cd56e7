"""Writes rounded embedding tables beside a SavedModel, for the server to map (docs/tables.md)."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from colcast.export.convert._folder import loaded
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import producer
from colcast.export.graph._sessions import session_config

_Floats = npt.NDArray[np.float32]
_Tensors = dict[str, npt.NDArray[Any]]

# The rows are those of server/engine/rewrites/lookup_tables.h.
_LEAST_BYTES = 1 << 20
_LARGEST = np.float32(127)
_MOST_LOST = np.float32(0.02)
_SMALL = np.float32(16)
_LEAST_SCALE = np.float32(1e-36)
_KEPT = 0x7FC0  # stands in place of the scale if a row keeps its floats
_ROWS_AT_ONCE = 1 << 16
_LOOKUPS = ("Gather", "GatherV2", "ResourceGather")


def write_rounded_tables(folder: Path, meta_graph: Any) -> None:
    """Writes int8 copies of a SavedModel's float32 tables of 1 MiB or more.

    Raises:
      ExportError: the model looks up rows in no such table.
    """
    target = folder / "int8"
    target.mkdir(exist_ok=True)
    index = np.frombuffer((folder / "variables" / "variables.index").read_bytes(), np.uint8)
    with TemporaryDirectory(dir=folder) as work:
        parts = [_save(Path(work) / "checkpoint", {"checkpoint": index})]
        signatures = [name for name in meta_graph.signature_def if not name.startswith("__")]
        with loaded(folder, meta_graph, signatures) as session:
            for name, values in _looked_up(session):
                named = {f"{kind}/{name}": tensor for kind, tensor in _in_int8(values).items()}
                parts.append(_save(Path(work) / str(len(parts)), named))
        if len(parts) == 1:
            raise ExportError("the model looks up rows in no float32 table of 1 MiB or more")
        prefix = str(target / "tables")
        merge = tf.raw_ops.MergeV2Checkpoints
        _run(lambda: (merge(checkpoint_prefixes=parts, destination_prefix=prefix), {}))


def _in_int8(values: _Floats) -> _Tensors:
    """Rounds each row to int8 with its own scale; rows that keep their floats are also returned."""
    count, width = values.shape
    rows = np.empty((count, 2 + width), np.int8)
    kept: list[npt.NDArray[np.int64]] = []
    for first in range(0, count, _ROWS_AT_ONCE):
        part = values[first : first + _ROWS_AT_ONCE]
        rounded, is_kept = _round(part)
        rows[first : first + len(part)] = rounded
        kept.append(first + np.flatnonzero(is_kept))
    ids = np.concatenate(kept, dtype=np.int64)
    return {"rows": rows, "kept_ids": ids, "kept_rows": values[ids]}


def _round(values: _Floats) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
    """Each row's scale and int8 values, and whether the row must keep its floats."""
    with np.errstate(all="ignore"):
        largest = np.max(np.abs(values).view(np.uint32), axis=1).view(np.float32)
        least = np.where(np.isfinite(largest), largest / _LARGEST, np.float32(0))
        fits = (largest == 0) | (least >= _LEAST_SCALE)
        halves = np.where(fits, (least.view(np.uint32) + np.uint32(0xFFFF)) >> 16, _KEPT)
        scales = (halves.astype(np.uint32) << 16).view(np.float32)
        inverses = np.where(fits & (largest > 0), np.float32(1) / scales, np.float32(0))
        # The product is exact in float64.
        whole = np.rint(values.astype(np.float64) * inverses[:, None])
        whole = np.where(fits[:, None], whole, 0).astype(np.int8)
        is_kept = ~fits | ((largest > 0) & ~_is_close(values, whole, scales))
    rounded = np.empty((len(values), 2 + values.shape[1]), np.int8)
    rounded[:, :2] = np.where(is_kept, _KEPT, halves).astype("<u2").view(np.int8).reshape(-1, 2)
    rounded[:, 2:] = whole
    return rounded, is_kept


def _is_close(
    values: _Floats, whole: npt.NDArray[np.int8], scales: _Floats
) -> npt.NDArray[np.bool_]:
    """Whether rounding keeps each row's small values accurate."""
    total, lost, largest = np.zeros((3, len(values)), np.float32)
    for column in range(values.shape[1]):
        value = np.abs(values[:, column] / scales)
        left = np.abs(value - np.abs(whole[:, column].astype(np.float32)))
        total += value
        largest = np.maximum(largest, value)
        lost += np.where(value < _SMALL, left, np.float32(0))
    return np.asarray(lost <= _MOST_LOST * (total - largest))


def _looked_up(session: Any) -> Iterator[tuple[str, _Floats]]:
    """Yields each large float32 table in which the main graph looks up rows, and its name."""
    graph = session.graph
    nodes = {node.name: node for node in graph.as_graph_def().node}
    tables = {}
    for node in [one for one in nodes.values() if one.op in _LOOKUPS]:
        handle = nodes[producer(node.input[0])]
        while handle.op in ("ReadVariableOp", "Identity"):
            handle = nodes[producer(handle.input[0])]
        if handle.op == "VarHandleOp" and handle.attr["dtype"].type == tf.float32:
            sizes = [dim.size for dim in handle.attr["shape"].shape.dim]
            if len(sizes) == 2 and 4 * math.prod(sizes) >= _LEAST_BYTES:
                tables[handle.attr["shared_name"].s.decode()] = handle.name
    for name, handle in sorted(tables.items()):
        with graph.as_default():
            value = tf.raw_ops.ReadVariableOp(
                resource=graph.get_tensor_by_name(f"{handle}:0"), dtype=tf.float32
            )
        yield name, session.run(value)


def _save(prefix: Path, tensors: _Tensors) -> str:
    def save() -> tuple[Any, dict[Any, Any]]:
        fed = [tf.compat.v1.placeholder(array.dtype) for array in tensors.values()]
        op = tf.raw_ops.SaveV2(
            prefix=str(prefix),
            tensor_names=list(tensors),
            shape_and_slices=[""] * len(tensors),
            tensors=fed,
        )
        return op, dict(zip(fed, tensors.values(), strict=True))

    _run(save)
    return str(prefix)


def _run(make: Callable[[], tuple[Any, dict[Any, Any]]]) -> None:
    """Runs an op in a separate graph."""
    with (
        tf.Graph().as_default() as graph,
        tf.compat.v1.Session(graph=graph, config=session_config()) as session,
    ):
        session.run(*make())
