"""Draws requests for trial runs of a graph: one user, some candidates."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from colcast.export.graph._errors import ExportError, TooLongError

_TRIES = 5
_FIRST_ROWS = (1, 2, 3)  # a request must also run with only its first 1, 2 or 3 candidates
_MORE = 5
_SMALL = 100  # small integers are below this

Array = np.ndarray[Any, np.dtype[Any]]
Columns = Mapping[str, Array]
DrawRows = Callable[[int], Columns]
"""`draw(n)` returns n rows of every input of the columnar signature, new ones on each call."""
Lengths = Mapping[str, str]
"""The columns of lists, each with the column that has its lengths."""


@dataclass(frozen=True)
class Request:
    """One user and n candidates.

    Attributes:
        user: user inputs, one row each.
        items: item inputs, n rows each.
        shared: inputs without a row dimension.
        lengths: the columns of lists, with the columns of their lengths.
    """

    user: Columns
    items: Columns
    shared: Columns
    lengths: Lengths = field(default_factory=dict)

    def once(self) -> Columns:
        """The columns of a late signature: the user as one row."""
        return {**self.shared, **self.user, **self.items}

    def repeated(self, rows: int) -> Columns:
        """The columns of a columnar signature: the first `rows` items, the user on each row."""
        user = {name: np.repeat(column, rows, axis=0) for name, column in self.user.items()}
        items = {name: column[:rows] for name, column in self.items.items()}
        return {**self.shared, **user, **items}

    def first(self, rows: int) -> "Request":
        """The same request with only the first `rows` candidates, and no padding for others."""
        items = {name: column[:rows] for name, column in self.items.items()}
        return replace(self, items=trimmed(items, self.lengths))

    def moderate(self) -> "Request":
        """The same request with every float mapped to [-1, 1]."""
        sides = (self.user, self.items, self.shared)
        user, items, shared = ({n: moderate(c) for n, c in side.items()} for side in sides)
        return Request(user, items, shared, self.lengths)

    def perturbed(self, relative: float, random: np.random.Generator) -> "Request":
        """The same request with every float changed by a relative amount, up or down."""

        def perturb(columns: Columns) -> Columns:
            factors = np.array((1 - relative, 1 + relative))
            return {
                name: (c * factors[random.integers(2, size=c.shape)]).astype(c.dtype)
                if c.dtype.kind == "f"
                else c
                for name, c in columns.items()
            }

        return replace(self, user=perturb(self.user), items=perturb(self.items))


class Requests:
    """Draws requests from a source of rows. In every other request, numbers are made small.

    Large numbers reveal overflows and unknown ids, but saturate a network, so its answers prove
    little. Where numbers are made small, floats that are equal in all rows are also replaced with
    different ones. A request is not used if the model fails on it, or on its first candidates
    alone: many models fail, in every format, if a list is empty in all rows of a request, or if a
    request has too few values.

    Attributes:
        rows: the rows from which the last request was drawn, each with its own user.
        answers: the model's answers to the last request, by the number of its first candidates.
    """

    def __init__(
        self,
        source: DrawRows,
        user: Collection[str],
        items: Collection[str],
        run: Callable[[Columns], Any],
        lengths: Lengths = MappingProxyType({}),
    ) -> None:
        """Prepares draws.

        Args:
            source: draws rows of every input.
            user: names of the user's inputs.
            items: names of the items' inputs.
            run: runs the model; raises ExportError if the model fails.
            lengths: the columns of lists, with the columns of their lengths.
        """
        self._source = source
        self._user = user
        self._items = items
        self._run = run
        self.lengths = lengths
        self.random = np.random.default_rng(0)
        self.rows: Columns = {}
        self.answers: dict[int, Any] = {}
        self._drawn = 0
        self._makes_small = True

    def draw(self, candidates: int, also: Collection[int] = ()) -> Request:
        """Draws a request with one user and that many candidates.

        Args:
            candidates: how many.
            also: numbers of first candidates that the model must accept alone, too.

        Raises:
            ExportError: the model fails on several consecutive draws.
            TooLongError: the model does not finish, even if numbers are not made small.
        """
        for left in reversed(range(_TRIES)):
            request = self._next(candidates)
            try:
                tried = (*_FIRST_ROWS, *also, candidates)
                self.answers = {
                    rows: self._run(request.first(rows).repeated(rows))
                    for rows in sorted({min(rows, candidates) for rows in tried})
                }
            except TooLongError:
                if not self._makes_small:
                    raise
                self._makes_small = False  # a small number may cause an endless loop
            except ExportError:
                if not left:
                    raise
            else:
                break
        return request

    def columns(self, rows: int) -> Columns:
        """Draws rows of every input; the model may fail on them."""
        columns = self._source(rows)
        self._drawn += 1
        if self._drawn % 2 and self._makes_small:
            columns = {name: self._small(name, column) for name, column in columns.items()}
        return columns

    def _next(self, candidates: int) -> Request:
        self.rows = columns = self.columns(candidates + 1)
        which = int(self.random.integers(candidates + 1))
        user = {name: columns[name][which : which + 1] for name in self._user}
        items = {name: np.delete(columns[name], which, axis=0) for name in self._items}
        shared = {name: c for name, c in columns.items() if name not in {*user, *items}}
        return Request(trimmed(user, self.lengths), items, shared, self.lengths)

    def _small(self, name: str, column: Array) -> Array:
        if column.dtype.kind == "f":
            if column.size > 1 and not np.ptp(column):
                column = np.asarray(self.random.normal(size=column.shape), column.dtype)
            return moderate(column)
        if column.dtype.kind == "i" and name not in self.lengths.values():
            return np.asarray(column % _SMALL)
        return column


def moderate(column: Array) -> Array:
    """Maps floats to [-1, 1], keeping their order; returns other columns unchanged."""
    if column.dtype.kind != "f":
        return column
    with np.errstate(invalid="ignore"):  # the default may be infinity
        return np.asarray(column / (1 + np.abs(column)), column.dtype)


def draw_rows(requests: Requests, rows: int) -> Columns:
    """Draws too many rows and keeps `rows` of them at random, as long lists may come first."""
    columns = requests.columns(rows + _MORE)
    chosen = requests.random.permutation(rows + _MORE)[:rows]
    return {name: column[chosen] for name, column in columns.items()}


def without_a_value(requests: Collection[Request]) -> set[str]:
    """User inputs that are 0 or empty in all requests, so trials cannot show their effect."""
    seen = {
        name
        for request in requests
        for name, column in request.user.items()
        if column.size and (column.dtype.kind not in "ifb" or column.any())
    }
    return {name for request in requests for name in request.user} - seen


def trimmed(row: Columns, lengths: Lengths) -> Columns:
    """The row as a client would send it, without the padding for longer rows drawn with it."""
    trimmed = dict(row)
    for name, length in lengths.items():
        if name in row:
            trimmed[name] = row[name][:, : int(row[length].max(initial=0))]
    return trimmed
