"""Draws rows that a model accepts: recorded rows, or generated ones restricted as needed."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from colcast.export.convert._signature import Conversion
from colcast.export.graph._comparison import redraw_note
from colcast.export.graph._errors import ExportError
from colcast.export.trials._both_signatures import BothSignatures
from colcast.export.trials._generate import Accepts, RowSource, accepted_rows, accepted_together
from colcast.export.trials._parity import generated_batches
from colcast.export.trials._rows import Rows
from colcast.export.trials._traffic import Recorded

_REDRAWS = 20  # attempts to draw rows that the model accepts
_FINITE_ROWS = 24  # generated rows that show whether scores are finite
# Up to this many refused recorded rows are isolated; after that, whole batches are dropped.
_MOST_REFUSED = 100


class ModelRows:
    """Draws rows that a model accepts.

    Attributes:
      recorded: the recorded rows that it accepts, in batches.
      refused: number of recorded rows that it refuses.
      refusal: its error for the first of them.
      redrawn: features whose generated values lead to NaN or infinite scores, with a description of
          the values drawn instead.
    """

    def __init__(
        self,
        probe: BothSignatures,
        conversion: Conversion,
        source: RowSource,
        traffic: Recorded | None,
    ) -> None:
        """Determines which generated and recorded rows the model accepts.

        Args:
          probe: runs the model.
          conversion: defines the features of the rows.
          source: draws generated rows; it is restricted until the model accepts them.
          traffic: recorded rows, if there are any.
        """
        self._probe = probe
        self._features = conversion.features
        self._bold = source
        accepts = partial(probe.accepts, readily=True)
        self._fits = source.fit(accepts)
        finite = source.fitted(partial(accepts, finitely=True)) if self._fits else None
        self.redrawn = finite.more_modest(source) if finite else {}
        self._source: RowSource = finite or source
        self._accepts: Accepts = partial(probe.accepts, finitely=bool(self.redrawn))
        self._random = np.random.default_rng(0)
        self.refused, self.refusal = 0, ""
        batches = [Rows(self._features, rows.cells) for rows in traffic.requests] if traffic else []
        self.recorded = [rows for rows in map(self._accepted_of, batches) if len(rows)]
        self._all_recorded = Rows.joined(self._features, self.recorded)

    def not_finite(self) -> str:
        """A note about generated rows with NaN or infinite scores; "" if there are none."""
        if self._source is not self._bold:
            return redraw_note(self.redrawn)
        rows = accepted_together(self._bold.draw(_FINITE_ROWS), self._probe.accepts)
        finite = not len(rows) or self._probe.accepts(rows, finitely=True)
        return "" if finite else redraw_note(None)

    def batches(self) -> Iterator[Rows]:
        """Generated rows, bold ones first, then rows with finite scores; then recorded rows."""
        yield from generated_batches(self._probe.accepts, self._bold)
        if self.redrawn:
            yield from generated_batches(self._accepts, self._source)
        yield from self.recorded

    def accepted(self, count: int) -> Rows:
        """Returns `count` accepted rows: generated ones or, if all are refused, recorded ones.

        Generated rows have finite scores, if the model scores any finitely.
        """
        rows = self._generated(count, self._source, self._accepts)
        if rows is None and self.redrawn:  # a row may score NaN only when it runs alone
            rows = self._generated(count, self._source, self._probe.accepts)
        if rows is not None:
            return rows
        if not self.recorded:
            refused = f"most of {_REDRAWS} times {count} generated rows"
            if self.refused:
                refused += f" and all {self.refused} recorded ones"
            raise ExportError(
                f"the model refuses {refused}: {self._probe.refusal}; record requests that it"
                " accepts and name them with --examples"
            )
        return self._of_recorded(count)

    def bold(self, count: int) -> Rows:
        """Returns `count` accepted rows, even if their scores are NaN or infinite."""
        rows = self._generated(count, self._bold, self._probe.accepts) if self.redrawn else None
        return self.accepted(count) if rows is None else rows

    def _generated(self, count: int, source: RowSource, accepts: Accepts) -> Rows | None:
        """Returns `count` rows; None if the model refuses too many of the drawn rows."""
        rows: Rows | None = None
        for _ in range(_REDRAWS if self._fits else 0):
            drawn = source.draw(count)
            accepted = accepted_rows(drawn, accepts)
            if accepted is drawn:
                return drawn
            rows = accepted if rows is None else rows + accepted
            if len(rows) >= count and accepts(rows[:count]):
                return rows[:count]
        return None

    def everyday(self, count: int) -> Rows:
        """Returns `count` rows of one user: recorded ones, or generated ones with small values."""
        if self.recorded:
            return self._of_recorded(count).of_user()
        rows = self.accepted(count)
        small = rows.everyday()
        return (small if self._accepts(small) else rows).of_user()

    def turns(self, *, bold: bool = False) -> Callable[[int], Rows]:
        """Returns a source of rows for late trials, which alternates generated and recorded draws.

        Args:
          bold: include draws that the model scores NaN or infinite.
        """
        generated = self.bold if bold else self.accepted
        turns = itertools.cycle([generated] * 2 + [self._of_recorded] * 2 * bool(self.recorded))
        return lambda count: next(turns)(count)

    def _of_recorded(self, count: int) -> Rows:
        """Returns `count` recorded rows, drawn at random."""
        drawn = self._random.integers(len(self._all_recorded), size=count)
        return self._all_recorded.take(drawn)

    def _accepted_of(self, recorded: Rows) -> Rows:
        """The recorded rows that the model accepts; counts the others."""
        if not len(recorded) or self._probe.accepts(recorded):
            return recorded
        self.refusal = self.refusal or self._probe.refusal
        accepted = recorded[:0]
        if self.refused < _MOST_REFUSED:
            accepted = accepted_together(recorded, self._probe.accepts)
        self.refused += len(recorded) - len(accepted)
        return accepted
