"""Reads the current state of a table: its newest version's file, and the deltas over it."""

import json
from pathlib import Path
from typing import Any

from colcast.items._errors import ItemTableError
from colcast.items._index import Key
from colcast.items._part import Part
from colcast.items._publish import deltas, newest
from colcast.items._schema import Schema

TABLE_FILE = "table.safetensors"


class ItemTable:
    """The rows of a table by key.

    Attributes:
        folder: the folder of the version.
        table: the file of the version.
        deltas: the deltas of this version; a later one overrides earlier ones.
    """

    def __init__(self, folder: str | Path, version: int | None = None) -> None:
        """Opens a version of the table in a folder; None for the newest.

        Raises:
            ItemTableError: there is no such version, or one of its files is malformed.
        """
        self.folder = newest(Path(folder)) if version is None else Path(folder, str(version))
        self.table = Part(self.folder / TABLE_FILE)
        self.deltas = [self._delta(path) for path in deltas(self.folder)]

    @property
    def schema(self) -> Schema:
        """The columns of its rows."""
        return self.table.schema

    @property
    def checksum(self) -> str:
        """The checksum that the table's file declares."""
        return self.table.container.metadata["checksum"]

    @property
    def absent(self) -> tuple[str, ...]:
        """The features without a column in the source; every row has their default."""
        return tuple(json.loads(self.table.container.metadata["absent"]))

    def get(self, key: int | str | bytes) -> dict[str, Any] | None:
        """A key's values by feature, in the form of `Part.row`; None if the key has no row."""
        wanted: Key = key.encode() if isinstance(key, str) else key
        for part in (*reversed(self.deltas), self.table):
            row = part.find(wanted)
            if row is not None:
                return part.row(row)
            if part is not self.table and wanted in part.deleted:
                return None
        return None

    def __len__(self) -> int:
        """The number of keys that have a row."""
        changed: set[Key] = set()
        for delta in self.deltas:
            changed |= delta.keys.all() | delta.deleted
        known = sum(self.table.find(key) is not None for key in changed)
        return self.table.rows - known + sum(self.get(key) is not None for key in changed)

    def verify(self) -> None:
        """Reads all files; ItemTableError if a checksum does not match."""
        for part in (self.table, *self.deltas):
            part.container.verify()

    def _delta(self, path: Path) -> Part:
        delta = Part(path)
        of = delta.container.metadata.get("table_checksum")
        if (of, delta.schema) != (self.checksum, self.schema):
            raise ItemTableError(f"{path}: not a delta of {self.table.container.path}")
        return delta
