"""Counts what Locust does not: requests' bytes and exact latencies by format, over all workers."""

from collections import Counter
from dataclasses import dataclass, field
from math import ceil, exp, log
from typing import Any

_STEP = log(1.01)  # latencies less than a hundredth apart are counted as one


@dataclass
class Calls:
    """Calls of one format.

    Attributes:
      answered: how many came back OK.
      failed: how many did not.
      request_bytes: in all.
      latencies: of those answered: the logarithm of milliseconds, in steps -> how many.
    """

    answered: int = 0
    failed: int = 0
    request_bytes: int = 0
    latencies: Counter[int] = field(default_factory=Counter)

    def add(self, milliseconds: float, request_bytes: int, *, ok: bool) -> None:
        """Counts one call."""
        self.request_bytes += request_bytes
        if ok:
            self.answered += 1
            self.latencies[round(log(max(milliseconds, 1e-3)) / _STEP)] += 1
        else:
            self.failed += 1

    @property
    def bytes_per_request(self) -> float:
        """Mean size of a request as it was sent; NaN where there was none."""
        return self.request_bytes / (self.answered + self.failed or float("nan"))

    def percentile_ms(self, percentile: float) -> float:
        """A percentile of the latencies, to half a percent; NaN where nothing was answered."""
        left = ceil(self.answered * percentile / 100)
        for step, count in sorted(self.latencies.items()):
            left -= count
            if left <= 0:
                return exp(step * _STEP)
        return float("nan")


class Tally:
    """Calls by format."""

    def __init__(self) -> None:
        """Counts nothing yet."""
        self.formats: dict[str, Calls] = {}

    def of(self, format_name: str) -> Calls:
        """The calls of a format."""
        return self.formats.setdefault(format_name, Calls())

    @property
    def answered(self) -> int:
        """Answered calls of all formats."""
        return sum(calls.answered for calls in self.formats.values())

    def take(self) -> dict[str, Any]:
        """Returns everything counted so far as plain values, and starts again from zero."""
        taken = {
            name: {**vars(calls), "latencies": dict(calls.latencies)}
            for name, calls in self.formats.items()
        }
        self.formats.clear()
        return taken

    def merge(self, taken: dict[str, Any]) -> None:
        """Adds what another tally's `take` returned."""
        for name, values in taken.items():
            calls = self.of(name)
            calls.answered += values["answered"]
            calls.failed += values["failed"]
            calls.request_bytes += values["request_bytes"]
            calls.latencies.update(values["latencies"])
