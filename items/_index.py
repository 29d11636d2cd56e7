"""Finds rows by key: the key's hash selects a bucket of rows."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

Array = npt.NDArray[Any]
Hashes = npt.NDArray[np.uint64]
Key = int | bytes

_HASH_BITS = 64


class Keys(NamedTuple):
    """The keys of some rows.

    Attributes:
        values: int64 [rows]; for strings, all their bytes.
        offsets: int64 [rows + 1], only for strings: the positions where they begin and end.
    """

    values: Array
    offsets: Array | None = None

    @property
    def rows(self) -> int:
        """The number of keys."""
        return len(self.values) if self.offsets is None else len(self.offsets) - 1

    def at(self, row: int) -> Key:
        if self.offsets is None:
            return int(self.values[row])
        return self.values[self.offsets[row] : self.offsets[row + 1]].tobytes()

    def all(self) -> set[Key]:
        return {self.at(row) for row in range(self.rows)}


class Index(NamedTuple):
    """The table's index.

    Attributes:
        starts: uint32 [2^b + 1]; bucket k is rows[starts[k] : starts[k + 1]].
        rows: uint32 [rows], ordered by the top b bits of their key's hash.
    """

    starts: Array
    rows: Array

    def find(self, keys: Keys, key: Key) -> int | None:
        """The row with this key; None if there is none."""
        bits = (len(self.starts) - 1).bit_length() - 1
        bucket = hash_of(key) >> (_HASH_BITS - bits)
        for row in self.rows[self.starts[bucket] : self.starts[bucket + 1]].tolist():
            if keys.at(row) == key:
                return int(row)
        return None


def hash_of(key: Key) -> int:
    """XXH3-64 of the key's bytes; an integer has 8 bytes, little endian."""
    data = key.to_bytes(8, "little", signed=True) if isinstance(key, int) else key
    return xxhash.xxh3_64_intdigest(data)


def hashes_of(keys: Keys) -> Hashes:
    """The hash of every key, uint64 [rows]."""
    return np.fromiter(map(xxhash.xxh3_64_intdigest, _bytes(keys)), np.uint64, keys.rows)


def make_index(hashes: Hashes) -> Index:
    """Makes the index for keys with these hashes; a bucket has one to two rows on average."""
    bits = (max(len(hashes) - 1, 0) // 2).bit_length()
    order = np.argsort(hashes, kind="stable")
    # A shift by all 64 bits is undefined, so a table with one bucket is a special case.
    buckets = (hashes >> np.uint64(_HASH_BITS - bits) if bits else hashes * 0).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(np.bincount(buckets, minlength=1 << bits))))
    return Index(starts.astype(np.uint32), order.astype(np.uint32))


def first_twice(keys: Keys, hashes: Hashes, index: Index) -> tuple[int, int] | None:
    """Two rows with the same key; None if all keys differ.

    If there are several such pairs, returns the one whose second row comes first.
    """
    ordered = hashes[index.rows]
    places = np.flatnonzero(ordered[1:] == ordered[:-1])
    first: dict[Key, int] = {}
    for row in np.unique(index.rows[np.concatenate((places, places + 1))]).tolist():
        before = first.setdefault(keys.at(row), row)
        if before != row:
            return before, row
    return None


def _bytes(keys: Keys) -> Iterator[memoryview]:
    data = np.ascontiguousarray(keys.values).view(np.uint8).data
    if keys.offsets is None:
        return (data[at : at + 8] for at in range(0, len(data), 8))
    return (data[start:end] for start, end in pairwise(keys.offsets.tolist()))
