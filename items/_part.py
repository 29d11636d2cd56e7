"""Reads one file of a table: rows by key."""

import math
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from colcast.items._container import Array, Container
from colcast.items._errors import ItemTableError
from colcast.items._features import ItemFeature
from colcast.items._index import Index, Key, Keys
from colcast.items._schema import FORMAT, FORMAT_VERSION, Schema


class Part:
    """A table's file, or a delta's, mapped into memory.

    Attributes:
        container: the file.
        schema: the columns of its rows.
        keys: the keys of its rows.
        index: finds rows by key.
    """

    def __init__(self, path: Path) -> None:
        """Reads the header; rows are read only when they are requested.

        Raises:
            ItemTableError: the file does not exist, or has another format.
        """
        self.container = Container(path)
        metadata, tensors = self.container.metadata, self.container.tensors
        got = metadata.get("format"), metadata.get("format_version")
        if got != (FORMAT, FORMAT_VERSION):
            expected = f"expected format {FORMAT!r}, version {FORMAT_VERSION!r}"
            raise ItemTableError(f"{path}: {expected}, got {got[0]!r}, version {got[1]!r}")
        try:
            self.schema = Schema.from_metadata(metadata)
            self.rows = int(metadata["rows"])
            self.created = int(metadata["created"])
            self.keys = self._keys("key")
            self.index = Index(tensors["index/starts"], tensors["index/rows"])
            self._columns = [self._column(feature) for feature in self.schema.features]
        except (KeyError, TypeError, ValueError) as error:
            raise ItemTableError(f"{path}: {type(error).__name__}: {error}") from error

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
        return {column.feature.name: column.at(row) for column in self._columns}

    def _keys(self, name: str) -> Keys:
        tensors = self.container.tensors
        if self.schema.key_dtype == "int64":
            return Keys(tensors[f"{name}/values"])
        return Keys(tensors[f"{name}/bytes"], tensors[f"{name}/offsets"])

    def _column(self, feature: ItemFeature) -> "_Column":
        tensors, name = self.container.tensors, f"column/{feature.name}"
        splits = tensors[f"{name}/splits"] if feature.is_list else None
        if feature.declared["dtype"] != "string":
            return _Column(feature, tensors[name], None, splits)
        return _Column(feature, tensors[f"{name}/bytes"], tensors[f"{name}/offsets"], splits)


class _Column:
    """A feature's values in the file."""

    def __init__(
        self, feature: ItemFeature, values: Array, offsets: Array | None, splits: Array | None
    ) -> None:
        self.feature = feature
        self._values, self._offsets, self._splits = values, offsets, splits

    def at(self, row: int) -> Any:
        start, end = (
            (row, row + 1) if self._splits is None else self._splits[row : row + 2].tolist()
        )
        found = self._numbers(start, end) if self._offsets is None else self._strings(start, end)
        values = found.reshape(-1, *self.feature.shape).tolist()
        return values[0] if self._splits is None else values

    def _numbers(self, start: int, end: int) -> Array:
        values = self._values[start:end]
        if self.feature.declared["dtype"] == "bfloat16":
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values

    def _strings(self, start: int, end: int) -> Array:
        assert self._offsets is not None
        size = math.prod(self.feature.shape)
        bounds = self._offsets[start * size : end * size + 1].tolist()
        found = np.empty(len(bounds) - 1, object)
        found[:] = [self._values[a:b].tobytes() for a, b in pairwise(bounds)]
        return found
