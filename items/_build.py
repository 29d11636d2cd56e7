"""Builds a new version of a table from a source of items."""

import json
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from colcast.client import InputError
from colcast.items._container import write_container
from colcast.items._convert import Columns
from colcast.items._features import features_of_model
from colcast.items._publish import publish, versions, work_folder
from colcast.items._rows import Progress, Rows, take_rows
from colcast.items._schema import Schema
from colcast.items._sources import LIST_SEPARATOR, batches_of, key_type
from colcast.items._table import TABLE_FILE


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

    The version's folder appears only when it is complete on disk, so a killed builder leaves
    nothing that a server would read.

    Args:
        model: a SavedModel that `colcast export` wrote, or its base path.
        source: the items, one per row: the path of a .parquet, .csv or .tfrecord file, or of a
            folder of such files; a pandas or Polars DataFrame, a pyarrow Table or
            RecordBatchReader, or an iterable of these. It may be larger than memory.
        key: the column that identifies an item, of integers or strings.
        output: the table's folder, with a subfolder for each version.
        domain: the domain of the table's features.
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
    first, batches = _peeked(batches)
    schema = Schema(domain, key, key_type(key, by_name.get(key), first), features)
    output = Path(output)
    with work_folder(output) as work:
        rows = take_rows(schema, batches, work / "columns", progress)
        target = output / str(_next(output) if version is None else version)
        (work / "table").mkdir()
        write_container(work / "table" / TABLE_FILE, _metadata(schema, rows), rows.tensors)
        publish(work / "table", target)
    return target


def _peeked(batches: Iterator[Columns]) -> tuple[Columns, Iterator[Columns]]:
    """The first batch, and an iterator over all of them; InputError if there is none."""
    first = next(batches, None)
    if first is None:
        raise InputError("the source has no rows, expected one per item")
    return first, chain([first], batches)


def _next(output: Path) -> int:
    return max(versions(output), default=0) + 1


def _metadata(schema: Schema, rows: Rows) -> dict[str, str]:
    return {
        **schema.to_metadata(),
        "kind": "table",
        "rows": str(rows.keys.rows),
        "absent": json.dumps(rows.absent),
        "created": str(int(time.time())),
    }
