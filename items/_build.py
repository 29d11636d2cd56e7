"""Builds tables and deltas from a source of rows, and publishes them."""

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import InputError
from colcast.items._container import Tensor, write_container
from colcast.items._index import Keys
from colcast.items._publish import deltas, publish, publish_delta, versions, work_folder
from colcast.items._rows import Progress, Rows, keys_in, keys_of, shown_key, take_rows
from colcast.items._schema import ItemFeature, Schema, features_of_model
from colcast.items._sources import LIST_SEPARATOR, batches_of, key_type
from colcast.items._table import FORMAT, TABLE_FILE, ItemTable
from colcast.items._variables import (
    DELTA_FOLDER,
    ROWS_FORMAT,
    Variable,
    checkpoint_of,
    variables_of,
    version_of,
)

_ID, _VECTOR = "id", "vector"
_NO_CHANGE = "the delta would change nothing"


def build_table(
    model: str | Path,
    source: Any,
    *,
    key: str,
    output: str | Path,
    domain: str = "item",
    version: int | None = None,
    list_separator: str = LIST_SEPARATOR,
    progress: Progress = lambda rows: None,
) -> Path:
    """Builds a table of a model's items and publishes it as a new version.

    The version's folder appears only when it is complete on disk, so a server never reads the files
    of a killed builder.

    Args:
        model: a SavedModel that `colcast export` wrote, or its base path.
        source: the items, one per row: the path of a .parquet, .csv, .tfrecord or .npz file, or of
            a folder of such files; a pandas or Polars DataFrame, a pyarrow Table or
            RecordBatchReader, or an iterable of these. It may be larger than memory.
        key: the column that identifies an item, of integers or strings.
        output: the table's folder, with a subfolder for each version.
        domain: the domain whose features the table has.
        version: the version's number; None for the newest plus one.
        list_separator: separates the values of lists and vectors in a CSV cell.
        progress: called with the number of rows read so far.

    Returns:
        The folder of the version.

    Raises:
        InputError: the source lacks a feature without a default, has a value that does not fit, or
            has a key twice; the message names the feature and the row, counted from 0.
        ItemTableError: the model or the output folder is malformed.
    """
    features = features_of_model(Path(model), domain)
    by_name = {feature.name: feature for feature in features}
    batches = batches_of(source, by_name, key, list_separator)
    first = next(batches, None)
    if first is None:
        raise InputError("the source has no rows, expected one per item")
    schema = Schema(domain, key, key_type(key, by_name.get(key), first), features)
    output = Path(output)
    with work_folder(output) as work:
        rows = take_rows(schema, chain([first], batches), work / "columns", progress)
        if version is None:
            version = max(versions(output), default=0) + 1
        (work / "table").mkdir()
        metadata = _metadata("table", schema, rows) | {"absent": json.dumps(rows.absent)}
        write_container(work / "table" / TABLE_FILE, FORMAT, metadata, rows.tensors)
        publish(work / "table", output / str(version))
    return output / str(version)


def build_delta(
    table: str | Path,
    source: Any = (),
    *,
    delete: Sequence[int | str | bytes] = (),
    list_separator: str = LIST_SEPARATOR,
    progress: Progress = lambda rows: None,
) -> Path:
    """Publishes a delta over the newest version: new or changed rows, and deleted keys.

    A row replaces the key's whole row, so the source needs every column of the table.

    Args:
        table: the table's folder.
        source: the rows, as for `build_table`.
        delete: the keys of the rows to delete; keys without a row are allowed.
        list_separator: separates the values of lists and vectors in a CSV cell.
        progress: called with the number of rows read so far.

    Returns:
        The delta's file.

    Raises:
        InputError: as for `build_table`; also if a key is both in the source and in `delete`, or if
            both are empty.
        ItemTableError: the table is malformed, or another delta was published in the meantime.
    """
    now = ItemTable(table)
    schema = now.schema
    by_name = {feature.name: feature for feature in schema.features}
    batches = batches_of(source, by_name, schema.key, list_separator)
    with work_folder(now.folder) as work:
        rows = take_rows(schema, batches, work / "columns", progress)
        keys = {schema.key: list(dict.fromkeys(delete))} if delete else {}
        gone = keys_of(keys_in(schema, keys))
        _check(now, rows, gone)
        metadata = _metadata("delta", schema, rows) | {"table_checksum": now.checksum}
        named = {"values": gone.values}
        if gone.offsets is not None:
            named = {"offsets": gone.offsets, "bytes": gone.values}
        deleted = (Tensor.of(f"deleted/{name}", array) for name, array in named.items())
        tensors = [*rows.tensors, *deleted]
        return publish_delta(now.folder, work, len(now.deltas), FORMAT, metadata, tensors)


def build_row_delta(
    model: str | Path,
    source: Any,
    *,
    table: str,
    version: int | None = None,
    progress: Progress = lambda rows: None,
) -> Path:
    """Publishes rows that replace an embedding table's rows with the same ids (docs/tables.md).

    A server that maps the table applies the delta while it serves.

    Args:
        model: a SavedModel, or its base path.
        source: columns `id` and `vector`, as for `build_table`.
        table: the variable's name, as in the server's log and status page.
        version: the version to use if `model` is a base path; None for the newest.
        progress: called with the number of rows read so far.

    Returns:
        The delta's file.

    Raises:
        InputError: an id is not a row of the table or occurs twice, or a vector does not fit; the
            message names the row, counted from 0.
        ItemTableError: the model or its table does not exist, or another delta was published in the
            meantime.
    """
    folder = version_of(Path(model), version)
    variables = variables_of(folder)
    variable = variables.get(table)
    if variable is None or not variable.shape:
        there = ", ".join(repr(one.name) for one in variables.values() if len(one.shape) > 1)
        raise InputError(f"{folder} has no table {table!r}; its tables are {there or 'none'}")
    name, shape = variable.dtype.name, list(variable.shape[1:])
    declared = {"kind": "fixed_len", "dtype": name, "shape": shape, "default": None}
    vector = ItemFeature(_VECTOR, declared)
    batches = batches_of(source, {_VECTOR: vector}, _ID)
    metadata = {"checkpoint": checkpoint_of(folder)}
    folder /= DELTA_FOLDER
    with work_folder(folder) as work:
        schema = Schema("", _ID, "int64", (vector,))
        rows = take_rows(schema, batches, work / "columns", progress)
        ids = _checked_ids(rows, variable)
        order = np.argsort(ids)
        vectors = rows.columns[f"column/{_VECTOR}"].array()[order]
        tensors = [
            # The name is stored as a tensor, so that the checksum covers it.
            Tensor.of("table", np.frombuffer(table.encode(), np.uint8)),
            Tensor.of("ids", ids[order]),
            Tensor.of("rows", vectors, name),
        ]
        return publish_delta(folder, work, len(deltas(folder)), ROWS_FORMAT, metadata, tensors)


def _metadata(kind: str, schema: Schema, rows: Rows) -> dict[str, str]:
    return {**schema.to_metadata(), "kind": kind, "rows": str(rows.keys.rows)}


def _check(table: ItemTable, rows: Rows, gone: Keys) -> None:
    """Raises InputError for a delta that is empty, incomplete or contradictory."""
    if not rows.keys.rows and not gone.rows:
        raise InputError(f"no rows and no keys to delete: {_NO_CHANGE}")
    missing = sorted(set(rows.absent) - set(table.absent)) if rows.keys.rows else []
    if missing:
        message = "missing, but the table has this column: a delta replaces whole rows"
        raise InputError(message, feature=missing[0])
    for place in range(gone.rows):
        row = rows.index.find(rows.keys, gone.at(place))
        if row is not None:
            message = f"key {shown_key(gone.at(place))} is also deleted"
            raise InputError(message, feature=table.schema.key, row=row)


def _checked_ids(rows: Rows, variable: Variable) -> Any:
    """The ids of the rows; InputError if there are none or one is not a row of the table."""
    if not rows.keys.rows:
        raise InputError(f"the source has no rows: {_NO_CHANGE}")
    ids = rows.keys.values
    beyond = np.flatnonzero((ids < 0) | (ids >= variable.shape[0]))
    if beyond.size:
        row = int(beyond[0])
        message = f"{ids[row]} is not a row: table {variable.name!r} has {variable.shape[0]:,}"
        raise InputError(message, feature=_ID, row=row)
    return ids
