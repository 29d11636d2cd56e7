"""What a load test came to, in plain values: the JSON file, and what the page is made from."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from colcast.loadtest.correctness import Check
from colcast.loadtest.figures import figures_of
from colcast.loadtest.formats import FORMATS
from colcast.loadtest.open_loop import kept_up
from colcast.loadtest.recording import Recording, percentile_ms
from colcast.loadtest.search import Found, Sla
from colcast.loadtest.series import Series

PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
_TIMELINE_BINS = 60


@dataclass
class Result:
    """What was measured of one series.

    Attributes:
      series: what was sent where.
      recording: every call.
      check: its answers under load against those in peace.
      memory_bytes: the server's at the end; None if it is not known.
      found: what a search for the highest rate found, if there was one.
    """

    series: Series
    recording: Recording
    check: Check
    memory_bytes: int | None = None
    found: Found | None = None


@dataclass
class Report:
    """A load test.

    Attributes:
      settings: what was asked for, by name, to be printed as it is.
      results: a series each; the first is what the others are compared with.
      sizes: N of every request that was sent in turn.
      sla: the latency target, if there is one.
    """

    settings: Mapping[str, str]
    results: list[Result]
    sizes: Sequence[int] = ()
    sla: Sla | None = None
    machine: str = field(default_factory=lambda: machine())

    @property
    def problems(self) -> list[str]:
        """What makes the run a failure: wrong answers, nothing answered."""
        found = []
        for result in self.results:
            label, checked = result.series.label, result.check
            if checked.wrong:
                found.append(
                    f"{label}: {checked.wrong} of {checked.checked} checked answers differ from "
                    f"those before the load, by up to {checked.largest:.3g}"
                )
            if not result.recording.answered:
                found.append(f"{label}: no call was answered, {result.recording.first_error}")
        return found

    @property
    def notes(self) -> list[str]:
        """What the figures have to be read with: errors, late sends, searches cut short."""
        found = []
        for result in self.results:
            recording, label = result.recording, result.series.label
            if recording.errors:
                codes = ", ".join(f"{n:,} {c}" for c, n in recording.codes.items() if c != "OK")
                found.append(f"{label}: {codes}; the first: {recording.first_error}")
            if not kept_up(recording):
                late = percentile_ms(recording.lateness, 99)
                found.append(
                    f"{label}: the load generator could not keep up, 1 % of its sends were more "
                    f"than {late:.0f} ms late; latencies count from when a call was due"
                )
            if result.found and result.found.generator_limited:
                found.append(
                    f"{label}: the search ended where the load generator, not the server, was late"
                )
            found += self._missed_once_more(result)
        return found

    def _missed_once_more(self, result: Result) -> list[str]:
        """A note if the rate that was found missed the target when it was measured again."""
        if self.sla is None or not (result.found and result.found.rate):
            return []
        reached = self.sla.reached(result.recording)
        if reached <= self.sla.milliseconds:
            return []
        measured = f"{reached:.1f} ms" if np.isfinite(reached) else "a call that failed"
        return [
            f"{result.series.label}: measured once more at {result.found.rate:,.0f} /s, "
            f"p{self.sla.percentile:g} was {measured}, which misses {self.sla}"
        ]

    def as_json(self) -> dict[str, Any]:
        """In plain values; null stands for what was not measured."""
        return {
            "settings": dict(self.settings),
            "machine": self.machine,
            "sla": None
            if self.sla is None
            else {"percentile": self.sla.percentile, "milliseconds": self.sla.milliseconds},
            "candidates": list(map(int, self.sizes)),
            "series": [_series(result) for result in self.results],
            "notes": self.notes,
            "problems": self.problems,
        }


def _series(result: Result) -> dict[str, Any]:
    recording, found = result.recording, result.found
    return {
        "label": result.series.label,
        "format": FORMATS[result.series.format].title,
        "target": result.series.target.address,
        "figures": figures_of(recording).as_json(),
        "server_memory_bytes": result.memory_bytes,
        "percentiles_ms": [
            [percentile, _finite(recording.latency_ms(percentile))] for percentile in PERCENTILES
        ],
        "timeline": timeline(recording),
        "checked": {
            "answers": result.check.checked,
            "wrong": result.check.wrong,
            "largest_difference": _finite(result.check.largest),
        },
        "search": None
        if found is None
        else {
            "highest_rate": found.rate,
            "generator_limited": found.generator_limited,
            "windows": [
                {"rate": w.rate, "ms": _finite(w.milliseconds), "verdict": w.verdict.value}
                for w in found.windows
            ],
        },
    }


def timeline(recording: Recording) -> list[dict[str, Any]]:
    """The run cut into at most 60 equal stretches of when calls were due."""
    if not recording.calls:
        return []
    end = max(call.due for call in recording.calls) * (1 + 1e-9) or 1.0
    bins: list[list[float]] = [[] for _ in range(_TIMELINE_BINS)]
    failed = [0] * _TIMELINE_BINS
    for call in recording.calls:
        place = int(call.due / end * _TIMELINE_BINS)
        if call.code == "OK":
            bins[place].append(call.answered - call.due)
        else:
            failed[place] += 1
    return [
        {
            "seconds": (place + 0.5) * end / _TIMELINE_BINS,
            "p50_ms": _finite(percentile_ms(np.array(values), 50)),
            "p95_ms": _finite(percentile_ms(np.array(values), 95)),
            "answered": len(values),
            "failed": failed[place],
        }
        for place, values in enumerate(bins)
    ]


def machine() -> str:
    """This machine in a few words: processor, cores, memory."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in info if line.startswith("model name")]
    memory = next(
        int(line.split()[1])
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal")
    )
    return (
        f"{models[0] if models else platform.machine()}, {len(models)} cores, "
        f"{memory / 1024**2:.0f} GiB, Linux {platform.release().split('-')[0]}"
    )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
