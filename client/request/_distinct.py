"""Finds the distinct rows of a domain's columns, and sends each once if that shrinks the request.

The input `row_to_<domain>`, int64 [N], then holds each candidate's row.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from colcast.client.columns._batch import Batch
from colcast.client.columns._column import Column
from colcast.client.columns._dtypes import Array
from colcast.client.request._targets import Plan


class Distinct(NamedTuple):
    """Distinct rows, compared bit by bit.

    Attributes:
        columns: columns of R rows, in order of first occurrence.
        rows: int64 [N], the index of each given row among them.
        saved: the bytes saved compared with the given columns, index included.
    """

    columns: list[Column]
    rows: Array
    saved: int


def send_distinct_rows(plan: Plan, batch: Batch) -> Batch:
    """The same request with the distinct rows of the plan's domains, if that saves enough.

    Columns that all candidates share keep one row, and so does a late signature's user. A server
    neither joins nor splits requests with an index, so the first index must save 128 KiB.
    """
    if not plan.domains or batch.keys:
        return batch
    least = 0 if batch.indices else _LEAST_SAVED
    columns, found = dict(batch.columns), dict[str, Distinct]()
    if sum(map(_about, _arrays(list(columns.values())))) < least:
        return batch
    for domain, features in plan.domains.items():
        own = [
            name
            for name, column in columns.items()
            if name in features and name not in batch.encoded and column.rows > 1
        ]
        if any(plan.features[name].one_row for name in own):
            continue
        distinct = distinct_rows([columns[name] for name in own])
        if distinct is not None:
            found[domain] = distinct
            columns |= zip(own, distinct.columns, strict=True)
    if sum(each.saved for each in found.values()) < least:
        return batch
    indices = {domain: distinct.rows for domain, distinct in found.items()}
    return replace(batch, columns=columns, indices={**batch.indices, **indices})


def distinct_rows(columns: Sequence[Column]) -> Distinct | None:
    """The distinct rows of equally long columns; None if sending them saves too little.

    Distinct rows and index must take at most three quarters of the columns' bytes. If more than
    three quarters of the first column's rows are distinct, as with an id, no other column is read.
    """
    arrays = _arrays(columns)
    if not arrays:
        return None
    most = _MOST * len(arrays[0])
    if len(set(_keys(arrays[:1]))) > most:
        return None
    numbers: dict[Hashable, int] = {}
    rows = np.array([numbers.setdefault(key, len(numbers)) for key in _keys(arrays)])
    if len(numbers) > most:
        return None
    first = np.empty(len(numbers), np.int64)
    first[rows[::-1]] = np.arange(len(rows))[::-1]
    distinct = [column.take(first) for column in columns]
    sizes = _row_bytes(_arrays(distinct))
    before, after = int((sizes * np.bincount(rows)).sum()), int(sizes.sum()) + rows.nbytes
    return Distinct(distinct, rows, before - after) if after <= _MOST * before else None


_LEAST_SAVED = 128 << 10
_MOST = 0.75


def _arrays(columns: Sequence[Column]) -> list[Array]:
    """The values and lengths of columns, without empty arrays."""
    return [array for column in columns for array in column if array is not None and array.size]


def _keys(arrays: Sequence[Array]) -> list[Hashable]:
    """A key per row, equal only for rows with the same bits."""
    by_row = [array.reshape(len(array), -1) for array in arrays]
    strings = [values for cells in by_row if cells.dtype == object for values in cells.T.tolist()]
    bits = [_bits(cells) for cells in by_row if cells.dtype != object]
    if not bits:
        return list(zip(*strings, strict=True))
    joined = np.concatenate(bits, axis=1, dtype=np.uint64)
    rows = joined.view(f"V{joined.shape[1] * joined.itemsize}").ravel().tolist()
    return list(zip(rows, *strings, strict=True)) if strings else rows


def _bits(cells: Array) -> Array:
    """Numbers [rows, n] as unsigned integers with the same bits."""
    return np.ascontiguousarray(cells).view(f"u{min(cells.itemsize, 8)}")


def _about(array: Array) -> int:
    """The approximate bytes of a column in a request; a string counts as 24, as in an export."""
    return array.nbytes if array.dtype != object else 24 * array.size


def _row_bytes(arrays: Sequence[Array]) -> Array:
    """The number of bytes of each row in a request, int64 [rows]."""
    rows = len(arrays[0])
    sizes = np.full(rows, sum(a.nbytes // rows for a in arrays if a.dtype != object), np.int64)
    for strings in [array for array in arrays if array.dtype == object]:
        lengths = np.fromiter(map(len, strings.ravel().tolist()), np.int64, strings.size)
        sizes += (lengths + _STRING_LEAD).reshape(rows, -1).sum(1)
    return sizes


_STRING_LEAD = 2  # tag and length of most strings
