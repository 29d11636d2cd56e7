"""Builds a delta of a table's newest version from the items that changed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colcast.client import InputError
from colcast.items._container import Tensor
from colcast.items._index import Keys
from colcast.items._publish import publish_delta, work_folder
from colcast.items._rows import Progress, Rows, keys_of, shown_key, take_rows, values_of
from colcast.items._schema import Schema
from colcast.items._sources import LIST_SEPARATOR, batches_of
from colcast.items._table import ItemTable


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
        gone = _keys(schema, delete)
        _check(now, rows, gone)
        metadata = {
            **schema.to_metadata(),
            "kind": "delta",
            "rows": str(rows.keys.rows),
            "table_checksum": now.checksum,
        }
        tensors = [*rows.tensors, *_deleted(gone)]
        return publish_delta(now.folder, work, len(now.deltas), metadata, tensors)


def _keys(schema: Schema, delete: Sequence[int | str | bytes]) -> Keys:
    batch = {schema.key: list(dict.fromkeys(delete))} if delete else None
    return keys_of(next(values_of([schema.key_feature], batch, 0)))


def _check(table: ItemTable, rows: Rows, gone: Keys) -> None:
    """Raises InputError for a delta that is empty, incomplete or contradictory."""
    if not rows.keys.rows and not gone.rows:
        raise InputError("no rows and no keys to delete: the delta would change nothing")
    missing = sorted(set(rows.absent) - set(table.absent)) if rows.keys.rows else []
    if missing:
        message = "missing, but the table has this column: a delta replaces whole rows"
        raise InputError(message, feature=missing[0])
    for place in range(gone.rows):
        row = rows.index.find(rows.keys, gone.at(place))
        if row is not None:
            message = f"key {shown_key(gone.at(place))} is also deleted"
            raise InputError(message, feature=table.schema.key, row=row)


def _deleted(gone: Keys) -> list[Tensor]:
    if gone.offsets is None:
        return [Tensor.of("deleted/values", gone.values)]
    return [Tensor.of("deleted/offsets", gone.offsets), Tensor.of("deleted/bytes", gone.values)]
