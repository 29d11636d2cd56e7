"""Converts a source's rows to the tensors of a table's file."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from colcast.client import InputError
from colcast.items._container import Tensor
from colcast.items._convert import Columns, check_columns, convert
from colcast.items._features import ItemFeature
from colcast.items._index import Hashes, Index, Key, Keys, first_twice, hashes_of, make_index
from colcast.items._schema import Schema
from colcast.items._spill import Spill
from colcast.items._values import Strings, Values, no_values

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
        tensors: all tensors of the file, including the index.
    """

    keys: Keys
    index: Index
    absent: tuple[str, ...]
    tensors: list[Tensor]


def take_rows(schema: Schema, batches: Iterable[Columns], folder: Path, progress: Progress) -> Rows:
    """Converts all rows and makes their index.

    Memory use is one batch and 8 bytes per row for its key's hash, or 24 bytes while the index is
    made.

    Args:
        schema: the columns of the table.
        batches: the batches of the source, each with at least one row.
        folder: a folder to make, which holds the tensors until they are written.
        progress: called after each batch.

    Raises:
        InputError: a feature without a default is missing, a value does not fit, or two rows have
            the same key; the message names them.
    """
    spill = Spill(folder)
    hashes = [_append(schema, None, spill)]  # a delta may have no rows
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
    return _indexed(schema, spill, np.concatenate(hashes), tuple(sorted(absent)))


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


def values_of(
    features: Sequence[ItemFeature], batch: Columns | None, rows: int
) -> Iterator[Values]:
    """Yields the values of each feature in a batch; None is a batch without rows."""
    return map(no_values, features) if batch is None else convert(features, batch, rows)


def _append(schema: Schema, batch: Columns | None, spill: Spill) -> Hashes:
    """Adds a batch, or no rows; returns the hashes of its keys."""
    values = next(values_of([schema.key_feature], batch, 0))
    keys = keys_of(values)
    if isinstance(values.content, Strings):
        spill.append_strings("key", values.content)
    else:
        spill.append("key/values", "int64", values.content)
    columns = values_of(schema.features, batch, keys.rows)
    for feature, column in zip(schema.features, columns, strict=True):
        spill.append_values(f"column/{feature.name}", feature.declared["dtype"], column)
    return hashes_of(keys)


def _indexed(schema: Schema, spill: Spill, hashes: Hashes, absent: tuple[str, ...]) -> Rows:
    """The rows with their index; InputError if two have the same key."""
    if schema.key_dtype == "int64":
        keys = Keys(spill.mapped("key/values"))
    else:
        keys = Keys(spill.mapped("key/bytes"), spill.mapped("key/offsets"))
    index = make_index(hashes)
    twice = first_twice(keys, hashes, index)
    if twice is not None:
        one, other = twice
        message = f"key {shown_key(keys.at(one))} is also in row {one}: expected each key once"
        raise InputError(message, feature=schema.key, row=other)
    tensors = [Tensor.of(f"index/{name}", array) for name, array in index._asdict().items()]
    return Rows(keys, index, absent, [*spill.tensors, *tensors])
