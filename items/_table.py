"""Reads a table by key from its newest version's file and the version's deltas."""

import json
import math
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from colcast.items._container import Array, Container, ItemTableError, reading
from colcast.items._index import Index, Key, Keys
from colcast.items._publish import deltas, newest
from colcast.items._schema import ItemFeature, Schema

FORMAT = "colcast-items"
TABLE_FILE = "table.safetensors"


class Part:
    """A table's file, or a delta's, mapped into memory.

    Attributes:
        container: the file.
        schema: the columns of its rows.
        rows: the number of rows.
        keys: the keys of its rows.
        index: finds rows by key.
    """

    def __init__(self, path: Path) -> None:
        """Reads the header; rows are read only when they are requested."""
        self.container = Container(path, FORMAT)
        metadata, tensors = self.container.metadata, self.container.tensors
        with reading(path):
            self.schema = Schema.from_metadata(metadata)
            self.rows = int(metadata["rows"])
            self.keys = self._keys("key")
            self.index = Index(tensors["index/starts"], tensors["index/rows"])
            self._columns = [self._column(feature) for feature in self.schema.features]

    def find(self, key: Key) -> int | None:
        """The row of a key; None if the key has none."""
        return self.index.find(self.keys, key)

    @cached_property
    def deleted(self) -> frozenset[Key]:
        """The keys that a delta deletes."""
        return frozenset(self._keys("deleted").all())

    def row(self, row: int) -> dict[str, Any]:
        """The values of a row by feature.

        A value is a number, a bool or bytes. If the feature has a shape, it is nested lists of
        these; if the feature is a list, there is one more level.
        """
        columns = zip(self.schema.features, self._columns, strict=True)
        return {feature.name: _values_at(row, feature, *column) for feature, column in columns}

    def _keys(self, name: str) -> Keys:
        tensors = self.container.tensors
        if self.schema.key_dtype == "int64":
            return Keys(tensors[f"{name}/values"])
        return Keys(tensors[f"{name}/bytes"], tensors[f"{name}/offsets"])

    def _column(self, feature: ItemFeature) -> tuple[Array, Array | None, Array | None]:
        """A feature's numbers or bytes, the offsets of its strings, the splits of its lists."""
        tensors, name = self.container.tensors, f"column/{feature.name}"
        splits = tensors[f"{name}/splits"] if feature.is_list else None
        if feature.declared["dtype"] != "string":
            return tensors[name], None, splits
        return tensors[f"{name}/bytes"], tensors[f"{name}/offsets"], splits


class ItemTable:
    """A table with its deltas, read by key.

    Attributes:
        folder: the folder of the version.
        table: the file of the version.
        deltas: the deltas of this version; a later one overrides earlier ones.
        schema: the columns of its rows.
        checksum: the checksum that the table's file declares.
        absent: the features without a column in the source; every row has their default.
    """

    def __init__(self, folder: str | Path, version: int | None = None) -> None:
        """Opens a version of the table in a folder; None for the newest."""
        self.folder = newest(Path(folder)) if version is None else Path(folder, str(version))
        self.table = Part(self.folder / TABLE_FILE)
        self.schema, metadata = self.table.schema, self.table.container.metadata
        with reading(self.folder / TABLE_FILE):
            self.checksum = metadata["checksum"]
            self.absent = tuple[str, ...](json.loads(metadata["absent"]))
        self.deltas = [self._delta(path) for path in deltas(self.folder)]

    def get(self, key: int | str | bytes) -> dict[str, Any] | None:
        """A key's values by feature, as in `Part.row`; None if the key has no row."""
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


def _values_at(
    row: int, feature: ItemFeature, values: Array, offsets: Array | None, splits: Array | None
) -> Any:
    start, end = (row, row + 1) if splits is None else splits[row : row + 2].tolist()
    if offsets is not None:
        size = math.prod(feature.shape)
        bounds = offsets[start * size : end * size + 1].tolist()
        found = np.empty(len(bounds) - 1, object)
        found[:] = [values[a:b].tobytes() for a, b in pairwise(bounds)]
    else:
        found = values[start:end]
        if feature.declared["dtype"] == "bfloat16":
            found = (found.astype(np.uint32) << 16).view(np.float32)
    listed = found.reshape(-1, *feature.shape).tolist()
    return listed[0] if splits is None else listed
