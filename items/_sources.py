"""Reads a source of rows as batches of columns: a file, a folder of files, or frames."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from colcast.client import DTYPES, Feature, InputError, Kind
from colcast.client.data_set import entries_of_examples
from colcast.client.tfrecord import read_records
from colcast.items._schema import ItemFeature, key_feature

Columns = Mapping[str, Any]
"""A batch of rows: name -> a list, an array or a series with one entry per row."""

KINDS = (".parquet", ".csv", ".tfrecord", ".npz")
LIST_SEPARATOR = "|"
BATCH_ROWS = 1 << 14

_RECORDS = 1 << 12  # tf.Examples per batch
_STRING = DTYPES["string"]


def batches_of(
    source: Any,
    features: Mapping[str, ItemFeature],
    key: str,
    separator: str = LIST_SEPARATOR,
) -> Iterator[Columns]:
    """The rows of a source in order, in batches of a few thousand; a .npz file is one batch.

    Args:
        source: the path of a file of one of `KINDS`, or of a folder of such files, which are read
            in the order of their names; a pandas or Polars DataFrame, a pyarrow Table or
            RecordBatchReader, or an iterable of these.
        features: the features to read, by name.
        key: the name of the key.
        separator: separates the values of a list in a CSV cell.
    """
    if not isinstance(source, str | Path):
        yield from _frames(source)
        return
    rows = 0
    for file in _files(Path(source)):
        if file.suffix == ".csv":
            batches = _csv(file, features, key, separator)
        elif file.suffix == ".tfrecord":
            batches = _records(file, features, key)
        else:
            batches = _arrays(file) if file.suffix == ".npz" else _parquet(file)
        try:
            for batch in batches:
                yield batch
                rows += len(next(iter(batch.values()), ()))
        except InputError as error:
            raise error.below(rows) from error
        except (pa.ArrowException, OSError, ValueError, BadZipFile) as error:
            raise InputError(f"cannot read {file}: {error}") from error


def key_type(key: str, feature: ItemFeature | None, columns: Columns) -> str:
    """The dtype of the key: "int64" or "string".

    Args:
        key: its name.
        feature: the key as a feature of the model; None if the model does not read it, and the
            first row decides.
        columns: the first batch.
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
        if path.suffix not in KINDS:
            raise InputError(f"{path}: expected a file that ends in {', '.join(KINDS)}")
        return [path]
    files = sorted(one for one in path.iterdir() if one.suffix in KINDS)
    if not files:
        raise InputError(f"{path} has no file that ends in {', '.join(KINDS)}")
    return files


def _parquet(path: Path) -> Iterator[Columns]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        # One reader per row group, because a reader of several groups keeps them all in memory.
        readers = (
            file.iter_batches(BATCH_ROWS, row_groups=[group])
            for group in range(file.num_row_groups)
        )
        yield from _frames(chain.from_iterable(readers))


def _arrays(path: Path) -> Iterator[Columns]:
    with np.load(path) as arrays:
        yield {name: arrays[name] for name in arrays}


def _records(path: Path, features: Mapping[str, ItemFeature], key: str) -> Iterator[Columns]:
    """The features and the key of each tf.Example; other features are skipped."""
    wanted = {name: one.feature for name, one in features.items()}
    wanted.setdefault(key, Feature(key, DTYPES["int64"], Kind.SINGLE, ()))
    records = read_records(path)
    while examples := list(islice(records, _RECORDS)):
        yield entries_of_examples(wanted, examples)


def _csv(
    path: Path, features: Mapping[str, ItemFeature], key: str, separator: str
) -> Iterator[Columns]:
    """Reads a CSV file: the first line names the columns; an empty cell is a missing value.

    Text is converted to the features' types; other columns stay text. A key that is not a feature
    is text, or integers if the first one is written as an integer.
    """
    from pyarrow import csv

    with csv.open_csv(path) as file:  # opened only to read the column names
        names = file.schema.names
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
    )
    with csv.open_csv(path, convert_options=convert) as file:
        for batch in file:
            if not batch.num_rows:
                continue
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            if key in columns and key not in features:
                first = columns[key][0].as_py() or ""
                is_number = first.removeprefix("-").isdecimal() and str(int(first)) == first
                features = {key: key_feature(key, "int64" if is_number else "string"), **features}
            for name in columns.keys() & features.keys():
                columns[name] = _from_text(features[name], columns[name], separator)
            yield columns


def _from_text(feature: ItemFeature, text: Any, separator: str) -> Any:
    """Converts a column of text to the feature's type, as lists if it has several per row."""
    dtype = feature.feature.dtype
    name = "float32" if dtype.name == "bfloat16" else dtype.name
    wanted = pa.string() if dtype is _STRING else pa.from_numpy_dtype(name)
    if feature.is_list or feature.shape:
        text, wanted = pc.split_pattern(text, separator), pa.list_(wanted)
    try:
        return pc.cast(text, wanted)
    except pa.ArrowInvalid:
        for row, cell in enumerate(text):
            try:
                cell.cast(wanted)
            except pa.ArrowInvalid:
                message = f"expected {dtype}, got {cell.as_py()!r}"
                raise InputError(message, feature=feature.name, row=row) from None
        raise


def _frames(source: Any) -> Iterator[Columns]:
    """The rows of a pandas, Polars or Arrow frame, or of an iterable of frames, in order."""
    library = type(source).__module__.partition(".")[0]
    if hasattr(source, "to_arrow"):  # a Polars frame
        yield from _frames(source.to_arrow())
    elif isinstance(source, pa.RecordBatch | pa.Table):
        _check_names(source.column_names)
        table = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            if batch.num_rows:
                yield dict(zip(batch.schema.names, batch.columns, strict=True))
    elif library == "pandas" and hasattr(source, "iloc"):
        _check_names(source.columns)
        for start in range(0, len(source), BATCH_ROWS):
            rows = source.iloc[start : start + BATCH_ROWS]
            yield {name: _series(rows[name]) for name in rows.columns}
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes | dict):
        for frame in source:
            yield from _frames(frame)
    else:
        raise InputError(
            "expected a pandas or Polars DataFrame, a pyarrow Table or RecordBatchReader, or an"
            f" iterable of them, got {type(source).__name__}"
        )


def _series(series: Any) -> Any:
    """A pandas column in Arrow's form: NaN, which pandas uses for missing values, becomes null."""
    if str(series.dtype) in ("str", "string") or getattr(series.dtype, "kind", "") == "f":
        return pa.array(series, from_pandas=True)
    return series


def _check_names(names: Iterable[Any]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise InputError("the frame has two columns of this name", feature=str(name))
        seen.add(name)
