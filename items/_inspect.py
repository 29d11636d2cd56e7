"""Shows item tables and a model's embedding tables as data and as text."""

import json
import urllib.request
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from colcast.items._container import Container, ItemTableError, reading
from colcast.items._publish import deltas
from colcast.items._table import ItemTable, Part
from colcast.items._variables import DELTA_FOLDER, ROWS_FORMAT, variables_of, version_of
from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

_SMALL = "smaller than --map_tables_min_bytes"
_NONE = "the server maps no table: --map_tables=off, or all are smaller than --map_tables_min_bytes"
OFFLINE = (
    "A server maps tables of 64 MiB or more (--map_tables_min_bytes) that are only looked up. Its "
    "log and --server say why other tables are not mapped."
)


def facts(table: ItemTable) -> dict[str, Any]:
    """The properties of a table as plain values."""
    schema = table.schema
    return {
        "folder": str(table.folder),
        "domain": schema.domain,
        "key": schema.key,
        "key_dtype": schema.key_dtype,
        "rows": len(table),
        "table": _part(table.table),
        "deltas": [{**_part(one), "deleted": len(one.deleted)} for one in table.deltas],
        "features": [{"name": one.name, **one.declared} for one in schema.features],
        "absent": list(table.absent),
    }


def row_of(table: ItemTable, key: int | str) -> dict[str, Any]:
    """The values of a key's row by feature; ItemTableError if the key has no row."""
    row = table.get(key)
    if row is None:
        raise ItemTableError(f"{table.folder} has no key {key!r}")
    return {name: _plain(value) for name, value in row.items()}


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
    found["deltas"] = [_row_delta(path) for path in deltas(folder / DELTA_FOLDER)]
    if server is not None:
        applied, error = served.get("deltas", 0), served.get("delta_error", "")
        found["server"] = {"address": server, "deltas": applied, "error": error}
    return found


def show(console: Console, found: Mapping[str, Any]) -> None:
    """Prints the result of another function: a line for a value, a table for a list of objects."""
    for name, value in found.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{key} {_text(key, one)}" for key, one in value.items())
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            shown = Table(*value[0], title=name, title_justify="left", box=box.SIMPLE_HEAD)
            for one in value:
                shown.add_row(*(escape(_text(key, cell)) for key, cell in one.items()))
            console.print(shown)
        else:
            console.print(f"{name}  {_text(name, value)}", highlight=False, markup=False)


def _text(name: str, value: Any) -> str:
    """A value as text; a time as a local date, a number of bytes with its unit."""
    if name == "created":
        return str(datetime.fromtimestamp(value))
    return decimal(value) if name == "bytes" else str(value)


def _file(container: Container, rows: int) -> dict[str, Any]:
    with reading(container.path):
        created = int(container.metadata["created"])
    return {"rows": rows, "bytes": container.path.stat().st_size, "created": created}


def _part(part: Part) -> dict[str, Any]:
    return _file(part.container, part.rows)


def _row_delta(path: Path) -> dict[str, Any]:
    """The properties of an embedding table's delta; ItemTableError if it is malformed."""
    file = Container(path, ROWS_FORMAT)
    file.verify()
    with reading(path):
        return {
            "sequence": int(file.metadata["sequence"]),
            "table": file.tensors["table"].tobytes().decode(),
            **_file(file, len(file.tensors["ids"])),
        }


def _served(server: str, folder: Path) -> dict[str, Any]:
    """What a server's status page says about the tables of the version in a folder."""
    with urllib.request.urlopen(f"http://{server}/status.json", timeout=10) as answer:
        models = json.load(answer)["models"]
    for model in models:
        for version in model["versions"]:
            if Path(version["path"]).resolve() == folder.resolve():
                tables: dict[str, Any] = version.get("tables", {})
                return tables
    raise ItemTableError(f"{server} serves no version from {folder}")


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
