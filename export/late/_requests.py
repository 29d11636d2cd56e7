"""Requests for trying a graph out: one user, some candidates."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Columns = Mapping[str, Array]
RowSource = Callable[[int], Columns]
"""Gives that many rows of every input of the columnar signature, different ones on each call."""


@dataclass(frozen=True)
class Request:
    """One user and n candidates.

    Attributes:
        user: user inputs, one row each.
        items: item inputs, n rows each.
        shared: inputs without a row dimension, as they are.
    """

    user: Columns
    items: Columns
    shared: Columns

    def once(self) -> Columns:
        """The columns of a late signature: the user as one row."""
        return {**self.shared, **self.user, **self.items}

    def repeated(self, rows: int) -> Columns:
        """The columns of a columnar signature: the user on each of `rows` rows."""
        user = {name: np.repeat(column, rows, axis=0) for name, column in self.user.items()}
        return {**self.shared, **user, **self.items}


class Requests:
    """Draws requests from a source of rows."""

    def __init__(self, source: RowSource, user: Collection[str], items: Collection[str]) -> None:
        """Takes the names of the inputs that belong to the user and to the items."""
        self._source = source
        self._user = user
        self._items = items

    def draw(self, candidates: int) -> Request:
        """A request with a user and that many candidates, none of them drawn before."""
        columns = self._source(candidates + 1)
        user = {name: columns[name][:1] for name in self._user}
        items = {name: columns[name][1:] for name in self._items}
        shared = {name: c for name, c in columns.items() if name not in {*user, *items}}
        return Request(_trimmed(user), items, shared)

    def users(self, count: int) -> list[Request]:
        """Requests without candidates: `count` users of one and the same draw."""
        columns = self._source(count)
        shared = {
            name: columns[name] for name in columns if name not in {*self._user, *self._items}
        }
        rows = [{name: columns[name][i : i + 1] for name in self._user} for i in range(count)]
        return [Request(_trimmed(row), {}, shared) for row in rows]


def _trimmed(row: Columns) -> Columns:
    """The row without the padding that longer rows of the draw gave it: as a client sends it."""
    trimmed = dict(row)
    for name, lengths in row.items():
        feature = name.removesuffix("/length")
        if feature != name and feature in row and row[feature].ndim >= 2:
            trimmed[feature] = row[feature][:, : int(lengths.max(initial=0))]
    return trimmed
