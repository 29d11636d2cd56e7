"""Builds a delta of an embedding table from its changed rows (docs/tables.md)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from colcast.client import InputError
from colcast.items._container import Tensor
from colcast.items._convert import Columns
from colcast.items._features import ItemFeature
from colcast.items._publish import deltas, publish_delta, work_folder
from colcast.items._rows import Progress, take_rows
from colcast.items._schema import Schema
from colcast.items._sources import batches_of
from colcast.items._variables import Variable, checkpoint_of, variables_of, version_of

FORMAT, FOLDER = "colcast-rows", "deltas"
_ID, _VECTOR = "id", "vector"


def build_row_delta(
    model: str | Path,
    source: Any,
    *,
    table: str,
    version: int | None = None,
    progress: Progress = lambda rows: None,
) -> Path:
    """Publishes rows that replace those with the same ids.

    A server that maps the table applies the delta while it serves.

    Args:
        model: a SavedModel, or its base path.
        source: columns `id` and `vector`: the path of a .npz, .parquet, .csv or .tfrecord file, or
            of a folder of such files; a DataFrame, a pyarrow Table or an iterable of these.
        table: the variable's name, as in the server's log and status page.
        version: the version in a base path; None for the newest.
        progress: called with the number of rows read so far.

    Returns:
        The delta's file.

    Raises:
        InputError: an id is not a row of the table or occurs twice, or a vector does not fit; the
            message has the row, counted from 0.
        ItemTableError: the model or its table does not exist, or another delta was published in the
            meantime.
    """
    folder = version_of(Path(model), version)
    variable = _find(folder, table)
    metadata = {"format": FORMAT, "format_version": "1", "checkpoint": checkpoint_of(folder)}
    # The name is data, so that the checksum covers it.
    name = Tensor.of("table", np.frombuffer(table.encode(), np.uint8))
    folder /= FOLDER
    with work_folder(folder) as work:
        tensors = [name, *_read(source, variable, work, progress)]
        return publish_delta(folder, work, len(deltas(folder)), metadata, tensors)


def _find(folder: Path, table: str) -> Variable:
    variables = variables_of(folder)
    found = variables.get(table)
    if found is None or not found.shape:
        there = ", ".join(repr(one.name) for one in variables.values() if len(one.shape) > 1)
        raise InputError(f"{folder} has no table {table!r}; its tables are {there or 'none'}")
    return found


def _read(source: Any, variable: Variable, work: Path, progress: Progress) -> list[Tensor]:
    """The ids in ascending order, and their rows."""
    shape = list(variable.shape[1:])
    declared = {"kind": "fixed_len", "dtype": variable.dtype.name, "shape": shape, "default": None}
    vector = ItemFeature(_VECTOR, declared)
    schema = Schema("", _ID, "int64", (vector,))
    read = take_rows(schema, _batches(source, vector), work / "columns", progress)
    if not read.keys.rows:
        raise InputError("the source has no rows: the delta would change nothing")
    ids = np.asarray(read.keys.values)
    beyond = np.flatnonzero((ids < 0) | (ids >= variable.shape[0]))
    if beyond.size:
        row = int(beyond[0])
        message = f"{ids[row]} is not a row: table {variable.name!r} has {variable.shape[0]:,}"
        raise InputError(message, feature=_ID, row=row)
    (spilled,) = (one for one in read.tensors if one.name == f"column/{_VECTOR}")
    rows = np.fromfile(str(spilled.data), variable.dtype.storage).reshape(spilled.shape)
    order = np.argsort(ids)
    return [Tensor.of("ids", ids[order]), Tensor.of("rows", rows[order], variable.dtype.name)]


def _batches(source: Any, vector: ItemFeature) -> Iterator[Columns]:
    if not isinstance(source, str | Path) or Path(source).suffix != ".npz":
        yield from batches_of(source, {_VECTOR: vector}, _ID)
        return
    try:
        with np.load(source) as arrays:
            yield {name: arrays[name] for name in arrays}
    except (OSError, ValueError, BadZipFile) as error:
        raise InputError(f"cannot read {source}: {error}") from error
