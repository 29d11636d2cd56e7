"""Reads CSV files as batches of columns, and converts text to the type of each feature."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from colcast.client import DTYPES, Feature, InputError
from colcast.items._convert import Columns
from colcast.items._features import ItemFeature, key_feature
from pyarrow import csv

_STRING = DTYPES["string"]


def batches_of_csv(
    path: Path, features: Mapping[str, ItemFeature], key: str, separator: str
) -> Iterator[Columns]:
    """The rows of a file whose first line names the columns; an empty cell is a missing value.

    Args:
        path: the file.
        features: decide how text is converted; other columns stay text.
        key: if it is not a feature, it is text, or integers if the first one is written as an
            integer.
        separator: separates the values of lists and vectors in a cell.

    Raises:
        InputError: the file is not CSV, or a cell does not have its feature's type; the message
            names the feature and row.
    """
    rows, types = 0, dict[str, ItemFeature]()
    for batch in _text(path):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if not rows and key in columns and key not in features:
            types = _type_of_key(key, columns[key][0].as_py())
        for name in columns.keys() & (features.keys() | types.keys()):
            feature = features[name] if name in features else types[name]
            try:
                columns[name] = _read(feature, columns[name], separator)
            except InputError as error:
                raise error.below(rows) from error
        yield columns
        rows += batch.num_rows


def _text(path: Path) -> Iterator[Any]:
    """Batches in which every column is text."""
    try:
        with csv.open_csv(path) as file:  # opened only to read the column names
            names = file.schema.names
        convert = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
        )
        with csv.open_csv(path, convert_options=convert) as file:
            yield from (batch for batch in file if batch.num_rows)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def _type_of_key(key: str, first: str | None) -> dict[str, ItemFeature]:
    """The type of the key, if it is converted: name -> feature."""
    number = first is not None and first.removeprefix("-").isdecimal() and str(int(first)) == first
    dtype = "int64" if number else "string"
    return {key: key_feature(key, dtype)}


def _read(feature: ItemFeature, text: Any, separator: str) -> Any:
    """Converts a column of text to the feature's values, as lists if it has several per row."""
    wanted = _arrow_type(feature.feature)
    if not feature.is_list and not feature.shape:
        return _cast(feature.feature, text, wanted)
    values = pc.split_pattern(text, separator)
    if feature.feature.dtype is not _STRING:
        values = _cast(feature.feature, values, pa.list_(wanted))
    return values


def _arrow_type(feature: Feature) -> Any:
    if feature.dtype is _STRING:
        return pa.string()
    name = "float32" if feature.dtype.name == "bfloat16" else feature.dtype.name
    return pa.from_numpy_dtype(name)


def _cast(feature: Feature, text: Any, wanted: Any) -> Any:
    try:
        return pc.cast(text, wanted)
    except pa.ArrowInvalid:
        for row, cell in enumerate(text):
            if not _is(cell, wanted):
                shown = cell.as_py()
                message = f"expected {feature.dtype}, got {shown!r}"
                raise InputError(message, feature=feature.name, row=row) from None
        raise


def _is(cell: Any, wanted: Any) -> bool:
    try:
        cell.cast(wanted)
    except pa.ArrowInvalid:
        return False
    return True
