"""Converts a source's rows to the tensors of a table's file."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from colcast.client import InputError
from colcast.items._container import DTYPES, Array, Tensor
from colcast.items._convert import Lengths, Strings, Values, check_columns, convert
from colcast.items._index import Hashes, Index, Key, Keys, first_twice, hashes_of, make_index
from colcast.items._schema import Schema, key_feature
from colcast.items._sources import Columns

Progress = Callable[[int], None]
"""Called with the number of rows read so far."""

_MOST_ROWS = 1 << 32  # row numbers are uint32


@dataclass(frozen=True)
class Rows:
    """The rows of a table's file.

    Attributes:
        keys: the key of every row.
        index: finds rows by key.
        absent: the features without a column in the source; every row has their default.
        columns: the tensors of the file without the index, by name.
    """

    keys: Keys
    index: Index
    absent: tuple[str, ...]
    columns: Mapping[str, Tensor]

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors of the file."""
        index = [Tensor.of(f"index/{name}", array) for name, array in self.index._asdict().items()]
        return [*self.columns.values(), *index]


def take_rows(schema: Schema, batches: Iterable[Columns], folder: Path, progress: Progress) -> Rows:
    """Converts all rows and makes their index.

    Memory use is one batch, plus 8 bytes per row (the key's hash), or 24 while the index is made.

    Args:
        schema: the columns of the table.
        batches: the batches of the source, each with at least one row.
        folder: a folder to make, which holds the tensors until they are written.
        progress: called after each batch.
    """
    spill = _Spill(folder)
    hashes = [_append(schema, {}, spill)]  # makes the tensors even if a delta has no rows
    absent = {feature.name for feature in schema.features}
    rows = 0
    for batch in batches:
        check_columns(schema.features, batch, schema.key)
        absent -= batch.keys()
        try:
            hashes.append(_append(schema, batch, spill))
        except InputError as error:
            raise error.below(rows) from error
        rows += len(hashes[-1])
        progress(rows)
    if rows >= _MOST_ROWS:
        raise InputError(f"expected fewer than {_MOST_ROWS:,} rows, got {rows:,}")
    keys, all_hashes = spill.keys(schema.key_dtype), np.concatenate(hashes)
    index = make_index(all_hashes)
    twice = first_twice(keys, all_hashes, index)
    if twice is not None:
        one, other = twice
        message = f"key {shown_key(keys.at(one))} is also in row {one}: expected each key once"
        raise InputError(message, feature=schema.key, row=other)
    return Rows(keys, index, tuple(sorted(absent)), spill.tensors)


def keys_in(schema: Schema, batch: Columns) -> Values:
    """The keys of a batch; none if it is empty."""
    return next(convert([key_feature(schema.key, schema.key_dtype)], batch, 0))


def keys_of(values: Values) -> Keys:
    """The keys from converted values."""
    if not isinstance(values.content, Strings):
        return Keys(values.content)
    ends = np.cumsum(values.content.lengths, dtype=np.int64)
    data = np.frombuffer(values.content.data, np.uint8)
    return Keys(data, np.concatenate((np.zeros(1, np.int64), ends)))


def shown_key(key: Key) -> str:
    """A key as text for messages."""
    return repr(key if isinstance(key, int) else key.decode(errors="backslashreplace"))


def _append(schema: Schema, batch: Columns, spill: "_Spill") -> Hashes:
    """Adds a batch; returns the hashes of its keys."""
    values = keys_in(schema, batch)
    keys = keys_of(values)
    spill.append("key", "int64", values, numbers="key/values")
    columns = convert(schema.features, batch, keys.rows)
    for feature, column in zip(schema.features, columns, strict=True):
        name = f"column/{feature.name}"
        spill.append(name, feature.declared["dtype"], column, numbers=name)
    return hashes_of(keys)


class _Spill:
    """Tensors that grow row by row on disk, since a source may be larger than memory.

    Attributes:
        tensors: the tensors by name, each in its own file in one folder.
    """

    def __init__(self, folder: Path) -> None:
        """Makes the folder, without tensors."""
        folder.mkdir()
        self._folder = folder
        self.tensors: dict[str, Tensor] = {}
        self._ends: dict[str, int] = {}

    def append(self, name: str, dtype: str, values: Values, numbers: str) -> None:
        """Adds the values of a column's next rows.

        Args:
            name: the column's name; the names of the tensors for lists and strings begin with it
                and a slash.
            dtype: TensorFlow's name of the dtype.
            values: the values of these rows.
            numbers: the name of the tensor for values other than strings.
        """
        if values.lengths is not None:
            self._append_ends(f"{name}/splits", values.lengths)
        if isinstance(values.content, Strings):
            self._append_ends(f"{name}/offsets", values.content.lengths)
            self._append(f"{name}/bytes", "uint8", np.frombuffer(values.content.data, np.uint8))
        else:
            self._append(numbers, dtype, values.content)

    def keys(self, dtype: str) -> Keys:
        """The keys, mapped from their files."""
        if dtype == "int64":
            return Keys(self.tensors["key/values"].array())
        return Keys(self.tensors["key/bytes"].array(), self.tensors["key/offsets"].array())

    def _append(self, name: str, dtype: str, values: Array) -> None:
        before = self.tensors.get(name)
        rows = len(values) + (before.shape[0] if before else 0)
        path = self._folder / str(len(self.tensors)) if before is None else before.data
        assert isinstance(path, Path)
        with path.open("ab") as file:
            values.tofile(file)
        self.tensors[name] = Tensor(name, DTYPES[dtype], (rows, *values.shape[1:]), path)

    def _append_ends(self, name: str, lengths: Lengths) -> None:
        """Adds the end positions of values with these lengths; the tensor begins with a 0."""
        if name not in self._ends:
            self._ends[name] = 0
            self._append(name, "int64", np.zeros(1, np.int64))
        ends = self._ends[name] + np.cumsum(lengths, dtype=np.int64)
        self._append(name, "int64", ends)
        if len(ends):
            self._ends[name] = int(ends[-1])
