"""How long a search will take, from what it has taken so far."""

from collections.abc import Sequence

from colcast.loadtest.budget import Budget, about
from colcast.loadtest.run import Options
from colcast.loadtest.search import Sla, Window, windows_left


class SearchOutlook:
    """Of the searches of several series, one after the other."""

    def __init__(self, labels: Sequence[str], sla: Sla, options: Options, budget: Budget) -> None:
        """Of searches that have not begun.

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
