"""Shows item tables and a model's embedding tables as data and as text."""

import json
import time
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from colcast.cli.console import counted
from colcast.items._container import Container
from colcast.items._errors import ItemTableError, reading
from colcast.items._publish import deltas
from colcast.items._table import ItemTable, Part
from colcast.items._variables import DELTA_FOLDER, ROWS_FORMAT, variables_of, version_of
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

_AGES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_SMALL = "smaller than --map_tables_min_bytes"
_NONE = "the server maps no table: --map_tables=off, or all are smaller than --map_tables_min_bytes"
_OFFLINE = (
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


def print_facts(console: Console, found: Mapping[str, Any]) -> None:
    table = found["table"]
    lines = [
        f"{found['folder']}: {counted(found['rows'], 'item')} by {found['key']}"
        f" ({found['key_dtype']}), "
        f"domain {found['domain']}",
        f"built {_ago(table)}: {counted(table['rows'], 'item')}, {_size(table['bytes'])}",
    ]
    lines += [
        f"delta {number}, {_ago(one)}: {counted(one['rows'], 'item')}, {one['deleted']:,} deleted, "
        f"{_size(one['bytes'])}"
        for number, one in enumerate(found["deltas"], 1)
    ]
    _print(console, lines)
    rows = []
    for one in found["features"]:
        note = ", no column" if one["name"] in found["absent"] else ""
        rows.append(
            (one["name"], one["kind"], one["dtype"], one["shape"], f"{one['default']}{note}")
        )
    _print_table(console, ("feature", "kind", "dtype", "shape", "default"), rows)


def print_row(console: Console, found: Mapping[str, Any]) -> None:
    """Prints the result of `row_of`, one line per feature."""
    width = max(map(len, found), default=0)
    _print(console, (f"{name:<{width}}  {value}" for name, value in found.items()))


def print_tables(console: Console, found: Mapping[str, Any]) -> None:
    _print(console, [found["folder"]])
    server = found.get("server")
    rows = []
    for one in found["tables"]:
        rows.append([one["name"], one["dtype"], one["shape"], _size(one["bytes"])])
        if server:
            why = one["in_memory_because"]
            rows[-1].append(f"in memory: {why}" if why else "mapped")
    _print_table(
        console, ("table", "dtype", "shape", "size", *(("served",) if server else ())), rows
    )
    lines = [] if server else [_OFFLINE]
    lines += [
        f"delta {one['sequence']}, {_ago(one)}: {counted(one['rows'], 'row')} of {one['table']}, "
        f"{_size(one['bytes'])}"
        for one in found["deltas"]
    ]
    if server:
        lines.append(f"{server['address']} has applied {counted(server['deltas'], 'delta')}")
        lines += [server["error"]] if server["error"] else []
    _print(console, lines)


def _print(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(line, highlight=False, markup=False)


def _print_table(console: Console, names: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    shown = Table(*names, box=box.SIMPLE_HEAD)
    for row in rows:
        shown.add_row(*(escape(str(cell)) for cell in row))
    console.print(shown)


def _ago(file: Mapping[str, Any]) -> str:
    """The age of a file as text."""
    seconds = max(0, int(time.time()) - file["created"])
    unit, name = next((one for one in _AGES if seconds >= one[0]), _AGES[-1])
    return f"{seconds // unit} {name} ago"


def _size(count: int) -> str:
    """A number of bytes as text."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


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
