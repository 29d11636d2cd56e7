"""Reads a source of rows as batches of columns: a file, a folder of files, or frames."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from colcast.client import InputError
from colcast.items._convert import Columns
from colcast.items._csv import batches_of_csv
from colcast.items._features import ItemFeature
from colcast.items._frames import BATCH_ROWS, batches_of_frames
from colcast.items._records import batches_of_records

KINDS = (".parquet", ".csv", ".tfrecord")
LIST_SEPARATOR = "|"


def batches_of(
    source: Any,
    features: Mapping[str, ItemFeature],
    key: str,
    separator: str = LIST_SEPARATOR,
) -> Iterator[Columns]:
    """The rows of a source, in order, in batches of a few thousand.

    Args:
        source: the path of a file of one of `KINDS`, or of a folder of such files, which are read
            in the order of their names; a pandas or Polars DataFrame, a pyarrow Table or
            RecordBatchReader, or an iterable of these.
        features: the features to read, by name.
        key: the name of the key.
        separator: separates the values of a list in a CSV cell.

    Raises:
        InputError: the source cannot be read.
    """
    if not isinstance(source, str | Path):
        yield from batches_of_frames(source)
        return
    for file in _files(Path(source)):
        if file.suffix == ".csv":
            yield from batches_of_csv(file, features, key, separator)
        elif file.suffix == ".tfrecord":
            yield from batches_of_records(file, features, key)
        else:
            yield from _parquet(file)


def key_type(key: str, feature: ItemFeature | None, columns: Columns) -> str:
    """The dtype of the key: "int64" or "string".

    Args:
        key: its name.
        feature: the key as a feature of the model; None if the model does not read it, and the
            first row decides.
        columns: the first batch.

    Raises:
        InputError: the key is a feature of a type that keys cannot have.
    """
    if feature is not None:
        dtype = feature.feature.dtype
        if feature.is_list or feature.shape not in ((), (1,)) or dtype.kind not in "iuO":
            message = f"expected a key that is an integer or a string, got {feature.feature}"
            raise InputError(message, feature=key)
        return "string" if dtype.kind == "O" else "int64"
    if key not in columns:
        return "int64"  # `check_columns` reports the missing column
    first = columns[key][0:1]
    values = first.to_pylist() if isinstance(first, pa.Array) else list(first)
    return "string" if values and isinstance(values[0], str | bytes) else "int64"


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        files = [path]
    else:
        files = sorted(one for one in path.iterdir() if one.suffix in KINDS)
    for file in files:
        if file.suffix not in KINDS:
            raise InputError(f"{file}: expected a file that ends in {', '.join(KINDS)}")
    if not files:
        raise InputError(f"{path} has no file that ends in {', '.join(KINDS)}")
    return files


def _parquet(path: Path) -> Iterator[Columns]:
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            # One reader per row group, since a reader of several keeps all of them in memory.
            readers = (
                file.iter_batches(BATCH_ROWS, row_groups=[group])
                for group in range(file.num_row_groups)
            )
            yield from batches_of_frames(chain.from_iterable(readers))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
