"""Draws requests for trial runs of a graph: one user, some candidates."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from colcast.export.convert._features import Feature, Kind, Side
from colcast.export.graph._errors import ExportError, TooLongError
from colcast.export.graph._sessions import Columns
from colcast.export.trials._rows import Cells, Rows

_TRIES = 5
_FIRST_ROWS = (1, 2, 3)  # a request must also run with only its first 1, 2 or 3 candidates
_MORE = 5
_SMALL = 100  # small integers are below this

DrawRows = Callable[[int], Rows]
"""`draw(n)` returns n rows, new ones on each call."""


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

    def __init__(self, source: DrawRows, run: Callable[[Columns], Any]) -> None:
        """Prepares draws.

        Args:
            source: draws rows.
            run: runs the model; raises ExportError if the model fails.
        """
        self._source, self._run = source, run
        self._random = np.random.default_rng(0)
        self.rows: Rows
        self.answers: dict[int, Any] = {}
        self._drawn = 0
        self._makes_small = True

    def draw(self, candidates: int, also: Collection[int] = ()) -> Rows:
        """Draws a request: that many candidates with the same user.

        Args:
            candidates: how many.
            also: numbers of first candidates that the model must accept alone, too.

        Raises:
            ExportError: the model fails on several consecutive draws.
            TooLongError: the model does not finish, even if numbers are not made small.
        """
        for left in reversed(range(_TRIES)):
            self.rows = self._next(candidates + 1)
            which = int(self._random.integers(candidates + 1))
            items = np.delete(np.arange(candidates + 1), which)
            request = self.rows.take([which, *items]).of_user()[1:]
            try:
                tried = (*_FIRST_ROWS, *also, candidates)
                self.answers = {
                    rows: self._run(request[:rows].columns())
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

    def draw_rows(self, rows: int) -> Rows:
        """Draws too many rows and keeps `rows` of them at random, as long lists may come first.

        The model may fail on them. Sequences without lengths are equally long in all rows, as in
        requests that share a run.
        """
        drawn = self._next(rows + _MORE).take(self._random.permutation(rows + _MORE)[:rows])
        return drawn.changed(_equally_long)

    def _next(self, count: int) -> Rows:
        rows = self._source(count)
        self._drawn += 1
        if not self._drawn % 2 or not self._makes_small:
            return rows
        return rows.changed(lambda feature, of: _small(feature, of, self._random))


def _small(feature: Feature, of: Cells, random: np.random.Generator) -> Cells:
    if "float" in feature.dtype and feature.dtype != "bfloat16":
        if of.padded.size > 1 and not np.ptp(of.padded):
            drawn = random.normal(size=of.padded.shape).astype(of.padded.dtype)
            of = Cells(np.where(of.entries(feature), drawn, of.padded), of.counts)
        return of.moderate(feature)
    if "int" in feature.dtype and not feature.dtype.startswith("u"):
        return of.changed(feature, lambda values: values % _SMALL)
    return of


def with_empty_sequences(rows: Rows) -> list[Rows]:
    """The rows without any step of a FIXED_LEN_SEQUENCE; none if no feature is one.

    Such columns have no lengths, so a list is empty only if it is empty in all rows of a request.
    """
    if all(feature.kind is not Kind.FIXED_LEN_SEQUENCE for feature in rows.features):
        return []
    return [rows.changed(_emptied)]


def _equally_long(feature: Feature, of: Cells) -> Cells:
    if feature.kind is not Kind.FIXED_LEN_SEQUENCE:
        return of
    return Cells(of.padded, np.full_like(of.counts, of.counts.max(initial=0)))


def _emptied(feature: Feature, of: Cells) -> Cells:
    if feature.kind is not Kind.FIXED_LEN_SEQUENCE:
        return of
    return Cells(of.padded[:, :0], np.zeros_like(of.counts))


def without_a_value(requests: Sequence[Rows]) -> set[str]:
    """User columns that are 0 or empty in all requests, so trials cannot show their effect."""
    seen, names = set[str](), set[str]()
    for request in requests:
        own = tuple(f for f in request.features if f.side == Side.USER and f.kind is not Kind.WHOLE)
        for name, column in Rows(own, request.cells)[:1].columns().items():
            names.add(name)
            if column.size and (column.dtype.kind not in "ifb" or column.any()):
                seen.add(name)
    return names - seen
