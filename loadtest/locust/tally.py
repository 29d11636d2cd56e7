"""Counts request bytes and exact latencies by format over all workers, which Locust does not."""

from collections import Counter
from dataclasses import dataclass, field
from math import ceil, exp, log
from typing import Any

_STEP = log(1.01)  # latencies that differ by less than 1 % are counted together


@dataclass
class Calls:
    """The calls of one format.

    Attributes:
      answered: the number of calls that returned OK.
      failed: the number of calls that did not.
      request_bytes: the total size of all requests.
      latencies: step on a logarithmic scale of milliseconds -> number of answered calls.
    """

    answered: int = 0
    failed: int = 0
    request_bytes: int = 0
    latencies: Counter[int] = field(default_factory=Counter)

    def add(self, milliseconds: float, request_bytes: int, *, ok: bool) -> None:
        self.request_bytes += request_bytes
        if ok:
            self.answered += 1
            self.latencies[round(log(max(milliseconds, 1e-3)) / _STEP)] += 1
        else:
            self.failed += 1

    @property
    def bytes_per_request(self) -> float:
        """Mean size of a sent request; NaN if there was none."""
        return self.request_bytes / (self.answered + self.failed or float("nan"))

    def percentile_ms(self, percentile: float) -> float:
        """A percentile of the latencies, accurate to half a percent; NaN without answers."""
        left = ceil(self.answered * percentile / 100)
        for step, count in sorted(self.latencies.items()):
            left -= count
            if left <= 0:
                return exp(step * _STEP)
        return float("nan")


class Tally:
    """The calls of each format."""

    def __init__(self) -> None:
        self.formats: dict[str, Calls] = {}

    def of(self, format_name: str) -> Calls:
        return self.formats.setdefault(format_name, Calls())

    @property
    def answered(self) -> int:
        """The number of answered calls of all formats."""
        return sum(calls.answered for calls in self.formats.values())

    def take(self) -> dict[str, Any]:
        """Returns all counts so far as plain values, and resets them to zero."""
        taken = {
            name: {**vars(calls), "latencies": dict(calls.latencies)}
            for name, calls in self.formats.items()
        }
        self.formats.clear()
        return taken

    def merge(self, taken: dict[str, Any]) -> None:
        """Adds the counts that another tally's `take` returned."""
        for name, values in taken.items():
            calls = self.of(name)
            calls.answered += values["answered"]
            calls.failed += values["failed"]
            calls.request_bytes += values["request_bytes"]
            calls.latencies.update(values["latencies"])
