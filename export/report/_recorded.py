"""Reads and prints assets.extra/colcast.json."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from colcast.export.graph._errors import ExportError
from colcast.export.report._report import FILE, FORMAT, say
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

_SHOWN = 12  # maximum number of printed refusals


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of the export that wrote a SavedModel folder; None if no export wrote it.

    Raises:
      ExportError: the file is not one that an export of this format writes.
    """
    file = folder / FILE
    if not file.exists():
        return None
    try:
        record: dict[str, Any] = json.loads(file.read_bytes())
        if record["format"] != FORMAT:
            raise ExportError(f"{file}: has format {record['format']!r}, expected {FORMAT}")
        return {key: record[key] for key in ("signatures", "seconds")} | record
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExportError(
            f"{file}: not what an export writes ({type(error).__name__}: {error}); export the model"
            " again"
        ) from error


def print_record(console: Console, record: Mapping[str, Any]) -> None:
    """Prints each signature's features, verdict and refusals; older records lack the latter two."""
    for name, signature in record["signatures"].items():
        console.print(features_table(name, signature))
        verdict, refused = signature.get("verdict", {}), signature.get("refused", [])
        say(console, [f"{heading + ':':11}{text}" for heading, text in verdict.items()])
        say(console, [f"refused:   {line}" for line in refused[:_SHOWN]])
        if len(refused) > _SHOWN:
            say(console, [f"           and {len(refused) - _SHOWN} more, which --json shows"])
    say(console, record.get("notes", []))


def features_table(name: str, signature: Mapping[str, Any]) -> Table:
    """A table with a row for each feature of a recorded signature."""
    features, nodes = signature["features"], signature["nodes"]
    table = Table(
        title=f"{signature['source']} -> {name}: {len(features)} features,"
        f" {nodes['before']} -> {nodes['after']} nodes",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for heading in ("feature", "kind", "dtype", "column", "default", "side"):
        table.add_column(heading, overflow="fold")
    for feature, of in features.items():
        sizes = ", ".join("?" if size is None else str(size) for size in of["columns"][feature])
        table.add_row(
            escape(feature),
            of["kind"],
            of["dtype"],
            f"\\[{sizes}]" + " + length" * (len(of["columns"]) > 1),
            escape(_default(of)),
            of["side"] if of["used"] else f"{of['side']}, not used",
        )
    return table


def _default(feature: Mapping[str, Any]) -> str:
    values = feature["default"]
    if feature["kind"] not in ("fixed_len", "whole"):
        return "empty"
    if values is None:
        return "required"
    shown = [value["hex"] if isinstance(value, dict) else str(value) for value in values[:3]]
    quoted = [f'"{value}"' if feature["dtype"] == "string" else value for value in shown]
    return ", ".join([*quoted, *(["..."] if len(values) > 3 else [])])
