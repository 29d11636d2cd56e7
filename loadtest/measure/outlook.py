"""Estimates how long a search will take, from the time it has taken so far."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from colcast.loadtest.measure.budget import Budget, about
from colcast.loadtest.measure.run import Options
from colcast.loadtest.measure.search import Sla, Window, windows_left

_FIRST_WINDOWS = 20  # of the first setting, about; most others are given up after two
_LATER_WINDOWS = 2
_START_SECONDS = 3.0  # of a server, and its warm-up


class SearchOutlook:
    """Estimates searches of several series, one after the other."""

    def __init__(self, labels: Sequence[str], sla: Sla, options: Options, budget: Budget) -> None:
        """Before any search has begun.

        Args:
          labels: of the series, in order.
          sla: what is searched for.
          options: how windows are measured.
          budget: of all of them together.
        """
        self._labels, self._sla, self._options, self._budget = labels, sla, options, budget
        self._windows: dict[str, list[Window]] = {}

    def note(self, label: str, window: Window) -> None:
        """A window was measured."""
        self._windows.setdefault(label, []).append(window)

    def __str__(self) -> str:
        """About how long it will still take, like "4 min"."""
        last = max(len(self._windows) - 1, 0)
        left = [
            windows_left(self._windows.get(label, ()), self._sla) + self._options.windows
            for label in self._labels[last:]
        ]
        return about(min(sum(left) * self._options.window_seconds, self._budget.left))


class ClimbOutlook:
    """Estimates a climb from setting to setting."""

    def __init__(self, window_seconds: float) -> None:
        """Before the climb has begun, with windows of so many seconds."""
        self._settings = 0
        self._first = _START_SECONDS + _FIRST_WINDOWS * window_seconds
        self._later = _START_SECONDS + _LATER_WINDOWS * window_seconds
        self._took: list[float] = []  # each setting, the first one too

    def settings(self, count: int) -> None:
        """Sets how many settings are left, including the one that begins."""
        self._settings = count

    @property
    def seconds(self) -> float:
        """The first setting is measured to its end; the others are as long as those so far."""
        later = self._took[1:]
        each = sum(later) / len(later) if later else self._later
        first = 0 if self._took else self._first - each
        return first + self._settings * each

    @contextmanager
    def one(self) -> Iterator[None]:
        """Times the setting that is measured in the block."""
        began = time.monotonic()
        yield
        self._took.append(time.monotonic() - began)
