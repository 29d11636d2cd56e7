"""The result of a load test as plain values, which the JSON file and the page contain."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from colcast.loadtest.measure.open_loop import kept_up
from colcast.loadtest.measure.recording import Recording, figures_of, finite, percentile_ms
from colcast.loadtest.measure.run import Result
from colcast.loadtest.measure.search import Ended, Sla
from colcast.loadtest.measure.series import LeftOut
from colcast.loadtest.report.gate import Thresholds, Verdict, headline, judge

PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
_TIMELINE_BINS = 60
_INSTRUCTION_SETS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")


@dataclass
class Report:
    """The result of a load test.

    Attributes:
      settings: the options by name, printed unchanged.
      results: one per series; the others are compared with the first.
      sizes: the number of candidates of every request, in order.
      sla: the latency target, if there is one.
      left_out: formats that a server cannot answer.
      thresholds: the thresholds for every series.
      load: `rate` or `clients`, whichever was given.
    """

    settings: Mapping[str, str]
    results: list[Result]
    sizes: Sequence[int] = ()
    sla: Sla | None = None
    left_out: Sequence[LeftOut] = ()
    thresholds: Thresholds = Thresholds()  # noqa: RUF009  frozen
    load: Mapping[str, float] = field(default_factory=dict)
    machine: str = field(default_factory=lambda: machine())

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict of every threshold for every series."""
        return judge(self.results, self.thresholds)

    @property
    def passed(self) -> bool:
        """Whether there is no problem and every threshold is met."""
        return not self.problems and all(verdict.passed for verdict in self.verdicts)

    @property
    def problems(self) -> list[str]:
        """Reasons for failure: wrong, refused or missing answers, or no confirmed rate."""
        found = []
        for result in self.results:
            label, checked, recording = result.series.label, result.check, result.recording
            if checked.wrong:
                found.append(
                    f"{label}: {checked.wrong} of {checked.checked} checked answers differ from "
                    f"those before the load, by up to {checked.largest:.3g}"
                )
            if result.refused:
                found.append(
                    f"{label}: {result.refused:,} of {len(recording.calls):,} calls refused under "
                    f"load, {recording.first_error}. Sent alone, each request was answered: a "
                    "server that joins requests of several users (batching) cannot serve this "
                    "format"
                )
            elif not recording.answered and not _interrupted(result):
                found.append(f"{label}: no call was answered, {recording.first_error}")
            found += self._unconfirmed(result)
        return found

    @property
    def notes(self) -> list[str]:
        """Caveats: errors, late sends, searches that were cut short."""
        found = [str(one) for one in self.left_out]
        for result in self.results:
            recording, label = result.recording, result.series.label
            if recording.errors:
                codes = ", ".join(f"{n:,} {c}" for c, n in recording.codes.items() if c != "OK")
                found.append(f"{label}: {codes}; the first: {recording.first_error}")
            if not kept_up(recording):
                late = percentile_ms(recording.lateness, 99)
                found.append(
                    f"{label}: the load generator could not keep up: 1 % of its sends were more "
                    f"than {late:.0f} ms late; latencies count from when a call was due"
                )
            if result.found and result.found.generator_limited:
                found.append(
                    f"{label}: the search ended because the load generator, not the server, was "
                    "late; run the generator on another machine to find the server's limit"
                )
            if result.found and result.found.ended is Ended.BUDGET:
                found.append(
                    f"{label}: --max-minutes ended the search early: higher rates may hold"
                )
        return found

    def _unconfirmed(self, result: Result) -> list[str]:
        """A problem if a search found no rate, or if the found rate then missed the target."""
        if self.sla is None or not result.found or result.found.confirmed:
            return []
        label, found = result.series.label, result.found
        if _interrupted(result):
            held = f"{found.rate:,.0f}" if found.rate else "no rate"
            return [f"{label}: interrupted; {held} per second held so far, not measured again"]
        if not found.rate:
            lowest = min((window.rate for window in found.windows), default=0.0)
            return [f"{label}: no rate meets {self.sla}, not even {lowest:,.3g} per second"]
        measured = ", ".join(
            f"{window.milliseconds:.1f} ms at {window.rate:,.0f}"
            if np.isfinite(window.milliseconds)
            else f"a call that failed at {window.rate:,.0f}"
            for window in found.again
        )
        return [
            f"{label}: no rate is confirmed. {found.rate:,.0f} per second held in the search, but "
            f"measured again, p{self.sla.percentile:g} was {measured} per second, above the target "
            f"of {self.sla.milliseconds:g} ms. Longer windows (--seconds), a load generator on "
            "another machine, or a less busy machine make the search steadier"
        ]

    def as_json(self) -> dict[str, Any]:
        """The report as plain values; null for unmeasured figures."""
        return {
            "settings": dict(self.settings),
            "machine": self.machine,
            "load": dict(self.load),
            "sla": finite(self.sla),
            "candidates": list(map(int, self.sizes)),
            "series": [_series(result) for result in self.results],
            "left_out": [{**vars(one), "target": one.target.name} for one in self.left_out],
            "headline": finite(headline(self.results)),
            "passed": self.passed,
            "thresholds": finite(self.verdicts),
            "notes": self.notes,
            "problems": self.problems,
        }


def _series(result: Result) -> dict[str, Any]:
    recording, found = result.recording, result.found
    return {
        "label": result.series.label,
        "server": result.series.target.name,
        "format": result.series.format,
        "target": result.series.target.address,
        "sound": result.sound,
        "figures": finite(figures_of(recording)),
        "server_memory_bytes": result.memory_bytes,
        "percentiles_ms": [
            [percentile, finite(recording.latency_ms(percentile))] for percentile in PERCENTILES
        ],
        "timeline": timeline(recording),
        "checked": {
            "answers": result.check.checked,
            "wrong": result.check.wrong,
            "largest_difference": finite(result.check.largest),
        },
        "search": None
        if found is None
        else {
            "highest_rate": found.rate if found.confirmed else None,
            "generator_limited": found.generator_limited,
            "ended_by": found.ended,
            "windows": finite(found.windows),
            "measured_again": finite(found.again),
        },
    }


def _interrupted(result: Result) -> bool:
    return result.found is not None and result.found.ended is Ended.INTERRUPT


def timeline(recording: Recording) -> list[dict[str, Any]]:
    """The latency in 60 equal windows of the run; a call counts in the window of its due time."""
    if not recording.calls:
        return []
    step = (max(call.due for call in recording.calls) * (1 + 1e-9) or 1.0) / _TIMELINE_BINS
    bins: list[list[float]] = [[] for _ in range(_TIMELINE_BINS)]
    for call in recording.calls:
        if call.code == "OK":
            bins[int(call.due / step)].append(call.answered - call.due)
    return [
        {"seconds": (place + 0.5) * step, "p95_ms": percentile_ms(np.array(values), 95)}
        for place, values in enumerate(bins)
        if values
    ]


def machine() -> str:
    """Describes this machine: processor, cores, instruction sets, memory."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    flags = next((line.split() for line in info if line.startswith("flags")), [])
    models = [line.partition(":")[2].strip() for line in info if line.startswith("model name")]
    memory = next(
        int(line.split()[1])
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal")
    )
    return (
        f"{models[0] if models else platform.machine()}, {len(models)} cores, "
        f"{' '.join(flag for flag in _INSTRUCTION_SETS if flag in flags) or 'no AVX2'}, "
        f"{memory / 1024**2:.0f} GiB, Linux {platform.release().split('-')[0]}"
    )
