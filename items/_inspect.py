"""Shows the contents of a table, as data and as text."""

import time
from collections.abc import Mapping
from typing import Any

from colcast.items._errors import ItemTableError
from colcast.items._part import Part
from colcast.items._table import ItemTable
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def facts(table: ItemTable) -> dict[str, Any]:
    """The properties of a table, as plain values."""
    schema = table.schema
    return {
        "folder": str(table.folder),
        "domain": schema.domain,
        "key": schema.key,
        "key_dtype": schema.key_dtype,
        "rows": len(table),
        "table": _file(table.table),
        "deltas": [{**_file(one), "deleted": len(one.deleted)} for one in table.deltas],
        "features": [{"name": one.name, **one.declared} for one in schema.features],
        "absent": list(table.absent),
    }


def row_of(table: ItemTable, key: int | str) -> dict[str, Any]:
    """The values of a key's row by feature; ItemTableError if the key has no row."""
    row = table.get(key)
    if row is None:
        raise ItemTableError(f"{table.folder} has no key {key!r}")
    return {name: _plain(value) for name, value in row.items()}


def print_facts(console: Console, found: Mapping[str, Any]) -> None:
    table, deltas = found["table"], found["deltas"]
    lines = [
        f"{found['folder']}: {found['rows']:,} items by {found['key']} ({found['key_dtype']}), "
        f"domain {found['domain']}",
        f"built {ago(table)}: {table['rows']:,} items, {size(table['bytes'])}",
    ]
    lines += [
        f"delta {number}, {ago(one)}: {one['rows']:,} items, {one['deleted']:,} deleted, "
        f"{size(one['bytes'])}"
        for number, one in enumerate(deltas, 1)
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False)
    features = Table("feature", "kind", "dtype", "shape", "default", box=box.SIMPLE_HEAD)
    for one in found["features"]:
        note = ", no column" if one["name"] in found["absent"] else ""
        cells = (one["name"], one["kind"], one["dtype"], one["shape"], f"{one['default']}{note}")
        features.add_row(*(escape(str(cell)) for cell in cells))
    console.print(features)


def print_row(console: Console, found: Mapping[str, Any]) -> None:
    """Prints the result of `row_of`, one line per feature."""
    width = max(map(len, found), default=0)
    for name, value in found.items():
        console.print(f"{name:<{width}}  {value}", highlight=False, markup=False)


def ago(file: Mapping[str, Any]) -> str:
    """The age of a file as text."""
    seconds = max(0, int(time.time()) - file["created"])
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds // unit} {name} ago"
    return f"{seconds} s ago"


def size(count: int) -> str:
    """A number of bytes as text."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


def _file(part: Part) -> dict[str, Any]:
    count = part.container.path.stat().st_size
    return {"rows": part.rows, "bytes": count, "created": part.created}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
