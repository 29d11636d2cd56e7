"""Estimates the remaining time of a search from the time it has taken so far."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from colcast.loadtest.measure.budget import Budget, about
from colcast.loadtest.measure.run import Options
from colcast.loadtest.measure.search import Sla, Window, windows_left

# The first setting takes about this many windows; most others are dropped after two.
_FIRST_WINDOWS = 20
_LATER_WINDOWS = 2
_START_SECONDS = 3.0  # the time to start a server and warm it up


class SearchOutlook:
    """Estimates the remaining time of searches that follow one another."""

    def __init__(self, labels: Sequence[str], sla: Sla, options: Options, budget: Budget) -> None:
        """Makes an estimate before any search has begun.

        Args:
          labels: the labels of the series, in order.
          sla: the target of the search.
          options: how windows are measured.
          budget: the budget of all searches together.
        """
        self._labels, self._sla, self._options, self._budget = labels, sla, options, budget
        self._windows: dict[str, list[Window]] = {}

    def note(self, label: str, window: Window) -> None:
        """Adds a measured window."""
        self._windows.setdefault(label, []).append(window)

    def __str__(self) -> str:
        """The remaining time as text, such as "4 min"."""
        last = max(len(self._windows) - 1, 0)
        left = [
            windows_left(self._windows.get(label, ()), self._sla) + self._options.windows
            for label in self._labels[last:]
        ]
        return about(min(sum(left) * self._options.window_seconds, self._budget.left))


class ClimbOutlook:
    """Estimates the remaining time of a climb from setting to setting."""

    def __init__(self, window_seconds: float) -> None:
        """Makes an estimate before the climb has begun, with windows of this length."""
        self._settings = 0
        self._first = _START_SECONDS + _FIRST_WINDOWS * window_seconds
        self._later = _START_SECONDS + _LATER_WINDOWS * window_seconds
        self._took: list[float] = []  # seconds per setting, including the first

    def settings(self, count: int) -> None:
        """Sets the number of remaining settings, including the current one."""
        self._settings = count

    @property
    def seconds(self) -> float:
        """The remaining seconds; assumes the mean time so far for all settings but the first."""
        later = self._took[1:]
        each = sum(later) / len(later) if later else self._later
        first = 0 if self._took else self._first - each
        return first + self._settings * each

    @contextmanager
    def one(self) -> Iterator[None]:
        """Times the setting that the block measures."""
        began = time.monotonic()
        yield
        self._took.append(time.monotonic() - began)
