"""Shows a model's tables and their deltas, as data and as text."""

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from colcast.items._container import Container
from colcast.items._errors import ItemTableError
from colcast.items._inspect import ago, size
from colcast.items._publish import deltas
from colcast.items._row_delta import FOLDER, FORMAT
from colcast.items._variables import variables_of, version_of
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

_SMALL = "smaller than --map_tables_min_bytes"
_NONE = "the server maps no table: --map_tables=off, or all are smaller than --map_tables_min_bytes"
_OFFLINE = (
    "A server maps tables of 64 MiB or more (--map_tables_min_bytes) that are only looked up. Its "
    "log and --server say why other tables are not mapped."
)


def tables_of(model: Path, version: int | None, server: str | None) -> dict[str, Any]:
    """The tables of a version as plain values; ItemTableError if a delta is malformed."""
    folder = version_of(model, version)
    served = {} if server is None else _served(server, folder)
    reasons = {one["name"]: one["in_memory_because"] for one in served.get("tables", ())}
    others = _SMALL if reasons else _NONE
    tables = []
    for one in variables_of(folder).values():
        if len(one.shape) < 2:
            continue
        reason = {} if server is None else {"in_memory_because": reasons.get(one.name, others)}
        tables.append(
            {"name": one.name, "dtype": one.dtype.name, "shape": list(one.shape), "bytes": one.size}
            | reason
        )
    found: dict[str, Any] = {"folder": str(folder), "tables": tables}
    found["deltas"] = [_delta(path) for path in deltas(folder / FOLDER)]
    if server is not None:
        applied, error = served.get("deltas", 0), served.get("delta_error", "")
        found["server"] = {"address": server, "deltas": applied, "error": error}
    return found


def print_tables(console: Console, found: Mapping[str, Any]) -> None:
    console.print(found["folder"], highlight=False, markup=False)
    served = "server" in found
    columns = ("table", "dtype", "shape", "size", *(("served",) if served else ()))
    tables = Table(*columns, box=box.SIMPLE_HEAD)
    for one in found["tables"]:
        cells = [one["name"], one["dtype"], str(one["shape"]), size(one["bytes"])]
        if served:
            why = one["in_memory_because"]
            cells.append(f"in memory: {why}" if why else "mapped")
        tables.add_row(*map(escape, cells))
    console.print(tables)
    lines = [] if served else [_OFFLINE]
    lines += [
        f"delta {one['sequence']}, {ago(one)}: {one['rows']:,} rows of {one['table']}, "
        f"{size(one['bytes'])}"
        for one in found["deltas"]
    ]
    if served:
        server = found["server"]
        lines.append(f"{server['address']} has applied {server['deltas']} deltas")
        lines += [server["error"]] if server["error"] else []
    for line in lines:
        console.print(line, highlight=False, markup=False)


def _served(server: str, folder: Path) -> dict[str, Any]:
    """The part of a server's status page about the tables of the version in a folder."""
    with urllib.request.urlopen(f"http://{server}/status.json", timeout=10) as answer:
        models = json.load(answer)["models"]
    for model in models:
        for version in model["versions"]:
            if Path(version["path"]).resolve() == folder.resolve():
                tables: dict[str, Any] = version.get("tables", {})
                return tables
    raise ItemTableError(f"{server} serves no version from {folder}")


def _delta(path: Path) -> dict[str, Any]:
    """The properties of a delta; ItemTableError if it is malformed."""
    file = Container(path)
    file.verify()
    if file.metadata.get("format") != FORMAT:
        raise ItemTableError(f"{path}: expected format {FORMAT!r}")
    try:
        return {
            "sequence": int(file.metadata["sequence"]),
            "table": file.tensors["table"].tobytes().decode(),
            "created": int(file.metadata["created"]),
            "rows": len(file.tensors["ids"]),
            "bytes": path.stat().st_size,
        }
    except (KeyError, ValueError) as error:
        raise ItemTableError(f"{path}: {type(error).__name__}: {error}") from error
