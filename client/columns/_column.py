"""The values of one feature as they are sent."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from colcast.client.columns._dtypes import Array


class Column(NamedTuple):
    """The values of one feature as they are sent.

    Attributes:
        values: [rows, *shape] (MULTI and SEQUENCE: [rows, longest, ...], padded), in the dtype's
            storage type; strings as an object array of bytes.
        lengths: int64 [rows], the number of real values in each row; only for MULTI.
    """

    values: Array
    lengths: Array | None = None

    @property
    def rows(self) -> int:
        return len(self.values)

    @property
    def longest(self) -> int:
        """The length of the longest list, in values or steps."""
        return self.values.shape[1] if self.lengths is None else int(self.lengths.max(initial=0))

    def take(self, rows: Sequence[int] | slice | Array) -> "Column":
        lengths = None if self.lengths is None else self.lengths[rows]
        return Column(self.values[rows], lengths)

    def same_on_every_row(self) -> bool:
        """Whether all rows hold exactly the same bits (so NaN equals NaN, 0.0 is not -0.0)."""
        if self.rows <= 1:
            return True
        if self.values.ndim == 1 and not _alike(self.values[0], self.values[-1]):
            return False
        if self.lengths is not None and (self.lengths != self.lengths[0]).any():
            return False
        values = self.values.reshape(self.rows, -1)
        if values.dtype != object:
            values = np.ascontiguousarray(values).view(np.uint8)
        elif values.shape[1] == 1:
            flat = values.ravel().tolist()
            return flat.count(flat[0]) == len(flat)
        return bool((values == values[0]).all())


def stacked(columns: Sequence[Column]) -> Column:
    """Stacks columns of one feature, and pads all lists to the longest."""
    if len({column.values.shape[1:] for column in columns}) > 1:
        columns = [_padded(column, columns) for column in columns]
    lengths = [column.lengths for column in columns if column.lengths is not None]
    return Column(
        np.concatenate([column.values for column in columns]),
        np.concatenate(lengths) if lengths else None,
    )


def empty_lists(storage: np.dtype[Any], rows: int) -> Column:
    """A multi-valued column in which every list is empty, padded to width 1."""
    padding = b"" if storage.kind == "O" else 0
    return Column(np.full((rows, 1), padding, storage), np.zeros(rows, np.int64))


def _padded(column: Column, columns: Sequence[Column]) -> Column:
    """Pads a column of lists to the width of the widest."""
    values = column.values
    more = max(other.values.shape[1] for other in columns) - values.shape[1]
    padding = b"" if values.dtype.kind == "O" else 0
    rest = np.full((column.rows, more, *values.shape[2:]), padding, values.dtype)
    return Column(np.concatenate((values, rest), axis=1), column.lengths)


def _alike(one: Any, two: Any) -> bool:
    """A cheap test for equality: False is certain, True is not."""
    return bool(one == two or one != one)
