"""Reads users and items from files: JSON, JSON lines, CSV, Parquet."""

import csv
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from colcast.client._errors import InputError
from colcast.client.columns._dtypes import BOOL, STRING, DType
from colcast.client.columns._schema import Feature, Kind

STANDARD_INPUT = Path("-")
ITEM_FILES = (".jsonl", ".json", ".csv", ".parquet")


def read_user(path: Path) -> dict[str, Any]:
    """Reads a JSON object of user features from a file or STANDARD_INPUT.

    Raises:
        InputError: the file cannot be read, or does not hold a JSON object.
    """
    if path == STANDARD_INPUT:
        user = _json("standard input", _standard_input())
    else:
        user = _json(path.name, _text(path))
    if not isinstance(user, dict):
        raise InputError(f"{path}: expected a JSON object, got {type(user).__name__}")
    return user


def read_items(
    path: Path, features: Mapping[str, Feature], list_separator: str = "|"
) -> list[dict[str, Any]]:
    """Reads items, one dict per row, from a file named *.jsonl, *.json, *.csv or *.parquet.

    Args:
        path: the file; or STANDARD_INPUT, with a JSON list or JSON lines.
        features: the model's features, which determine how a CSV cell is parsed; other columns stay
            text.
        list_separator: the separator between values of a multi-valued feature in a CSV cell.

    Raises:
        InputError: an unknown ending, or a file whose contents do not match it.
    """
    if path == STANDARD_INPUT:
        return _json_of_either_form("standard input", _standard_input())
    readers: dict[str, Callable[[], list[dict[str, Any]]]] = {
        ".jsonl": lambda: _json_lines(path.name, _text(path)),
        ".json": lambda: _json_rows(path.name, _text(path)),
        ".csv": lambda: _csv(path, features, list_separator),
        ".parquet": lambda: _parquet(path),
    }
    if path.suffix not in readers:
        raise InputError(f"{path}: expected a file that ends in {', '.join(ITEM_FILES)}")
    return readers[path.suffix]()


def _text(path: Path) -> str:
    """The text of a file without a byte-order mark, with its line ends unchanged."""
    try:
        return _decoded(str(path), path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _standard_input() -> str:
    return _decoded("standard input", sys.stdin.buffer.read())


def _decoded(where: str, text: bytes) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{where} is not UTF-8 text") from None


def _json(where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not JSON: {error}") from None


def _json_of_either_form(where: str, text: str) -> list[dict[str, Any]]:
    reader = _json_rows if text.lstrip().startswith("[") else _json_lines
    return reader(where, text)


def _json_lines(where: str, text: str) -> list[dict[str, Any]]:
    # Only "\n" ends a line: text in JSON may contain other line separators.
    lines = enumerate(text.split("\n"), 1)
    return [_json(f"{where}:{number}", line) for number, line in lines if line.strip()]


def _json_rows(where: str, text: str) -> list[dict[str, Any]]:
    rows = _json(where, text)
    if not isinstance(rows, list):
        raise InputError(f"{where}: expected a JSON list of rows, got {type(rows).__name__}")
    return rows


def _parquet(path: Path) -> list[dict[str, Any]]:
    try:
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise InputError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    try:
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    return rows


def _csv(path: Path, features: Mapping[str, Feature], separator: str) -> list[dict[str, Any]]:
    reader = csv.reader(io.StringIO(_text(path), newline=""))
    try:
        header = next(reader, [])
        lines = [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise InputError(f"{path.name}:{reader.line_num}: not CSV: {error}") from None
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise InputError(f"{path.name}: the header names {twice[0]!r} more than once")
    for number, (line, cells) in enumerate(lines):
        if len(cells) != len(header):
            message = f"{path.name}:{line}: {len(cells)} cells, but the header has {len(header)}"
            raise InputError(message, row=number)
    return [
        {
            name: _value(features[name], cell, number, separator) if name in features else cell
            for name, cell in zip(header, cells, strict=True)
        }
        for number, (_, cells) in enumerate(lines)
    ]


def _value(feature: Feature, cell: str, row: int, separator: str) -> Any:
    """A cell converted to the feature's dtype; an empty cell is missing, or an empty list."""
    try:
        if feature.kind is Kind.SINGLE and feature.shape == ():
            return None if cell == "" else _scalar(feature.dtype, cell)
        parts = cell.split(separator) if cell else []
        return [_scalar(feature.dtype, part.strip()) for part in parts]
    except ValueError:
        message = f"expected {feature.dtype}, got {cell!r}"
        raise InputError(message, feature=feature.name, row=row) from None


def _scalar(dtype: DType, text: str) -> Any:
    if dtype is STRING:
        return text
    if dtype is BOOL:
        return {"true": True, "false": False}.get(text.lower(), text)
    return float(text) if dtype.kind == "f" else int(text)
