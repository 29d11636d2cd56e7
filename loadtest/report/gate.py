"""Summarizes a load test in a headline, and checks thresholds for every series, as a CI gate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from colcast.loadtest.measure.open_loop import kept_up
from colcast.loadtest.measure.recording import figures_of, milliseconds, share
from colcast.loadtest.measure.run import Result
from colcast.loadtest.measure.search import Sla


@dataclass(frozen=True)
class Thresholds:
    """Thresholds for every series.

    Attributes:
      slas: latency percentiles; a failed call counts as never answered.
      max_errors: the largest number of failed calls; None for no limit.
    """

    slas: tuple[Sla, ...] = ()
    max_errors: int | None = None


@dataclass(frozen=True)
class Verdict:
    """The result of one threshold for one series.

    Attributes:
      series: the label of the series.
      threshold: such as `p95 <= 25 ms`.
      measured: such as `31.2 ms`.
      passed: whether the threshold was met.
    """

    series: str
    threshold: str
    measured: str
    passed: bool

    def __str__(self) -> str:
        result = "passed" if self.passed else "failed"
        return f"{self.series}: {self.threshold}: {result}, {self.measured}"


def judge(results: Sequence[Result], thresholds: Thresholds) -> list[Verdict]:
    """The verdict of every threshold for every series, in their order."""
    verdicts = []
    for result in results:
        verdicts += [_latency(result, sla) for sla in thresholds.slas]
        if thresholds.max_errors is not None:
            label, errors = result.series.label, result.recording.errors
            kept = errors <= thresholds.max_errors
            verdicts.append(Verdict(label, f"errors <= {thresholds.max_errors}", f"{errors}", kept))
    return verdicts


def junit(verdicts: Sequence[Verdict], problems: Sequence[str]) -> str:
    """The verdicts as JUnit XML: a test case for each threshold and series, and for the answers.

    Args:
      verdicts: the result of `judge`.
      problems: other failures; see Report.problems.
    """
    cases = [(it.series, it.threshold, "" if it.passed else it.measured) for it in verdicts]
    cases.append(("answers", "correct, and none refused", "; ".join(problems)))
    failures = sum(bool(failure) for _, _, failure in cases)
    suite = ElementTree.Element(
        "testsuite", name="colcast loadtest", tests=f"{len(cases)}", failures=f"{failures}"
    )
    for label, name, failure in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=label, name=name)
        if failure:
            ElementTree.SubElement(case, "failure", message=failure)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"


def _latency(result: Result, sla: Sla) -> Verdict:
    reached = sla.reached(result.recording)
    measured = f"{reached:.1f} ms" if np.isfinite(reached) else "too many calls failed"
    passed = reached <= sla.milliseconds
    if not passed and not kept_up(result.recording, sla.percentile):
        measured += "; the load generator was late"
    return Verdict(result.series.label, str(sla), measured, passed)


class Gain(NamedTuple):
    """A comparison: "18 %", "of the server CPU", "4.68 instead of 25.8 ms per request"."""

    share: str
    of: str
    values: str


@dataclass(frozen=True)
class Headline:
    """The labels of the best and of the first series, and figures that compare them."""

    best: str
    first: str
    gains: tuple[Gain, ...]

    def __str__(self) -> str:
        gains = ", ".join(f"{gain.share} {gain.of} ({gain.values})" for gain in self.gains)
        return f"{self.best} against {self.first}: {gains}"


def headline(results: Sequence[Result]) -> Headline | None:
    """Compares the best of the other series with the first.

    The best series is the one with the highest rate that a search has confirmed. Without a search,
    it is the one with the least server CPU, or with the lowest 95th percentile if the CPU is not
    known.

    Returns:
      None if there is no valid comparison: fewer than two series have correct answers, or a search
      did not confirm its rate.
    """
    sound = [result for result in results if result.sound]
    if len(sound) < 2 or sound[0] is not results[0]:
        return None
    first, others = sound[0], sound[1:]
    if first.found:
        if not all(result.found and result.found.settled for result in sound):
            return None
        best = max(others, key=_rate)
        gains = [_rate_gain(first, best), *_gains(first, best)[:2]]
    else:
        best = min(others, key=_cost)
        gains = _gains(first, best)
    kept = tuple(gain for gain in gains if gain.share != "-")
    return Headline(best.series.label, first.series.label, kept) if kept else None


def _rate(result: Result) -> float:
    return result.found.rate if result.found else 0.0


def _cost(result: Result) -> tuple[bool, float]:
    cpu = result.recording.server_cpu_ms
    return (False, cpu) if cpu == cpu else (True, result.recording.latency_ms(95))


def _rate_gain(first: Result, best: Result) -> Gain:
    before, after = _rate(first), _rate(best)
    values = f"{after:,.0f} against {before:,.0f} requests per second"
    return Gain(share(after, before), "of the highest rate", values)


def _gains(first: Result, best: Result) -> list[Gain]:
    before, after = figures_of(first.recording), figures_of(best.recording)

    def gain(name: str, of: str, unit: str, shown: Callable[[float], str]) -> Gain:
        then, now = getattr(before, name), getattr(after, name)
        return Gain(share(now, then), of, f"{shown(now)} against {shown(then)} {unit}")

    gains = [
        gain("server_cpu_ms", "of the server CPU", "ms per request", milliseconds),
        gain("request_bytes", "of the bytes", "bytes per request", "{:,.0f}".format),
    ]
    if all(kept_up(one.recording, 95) for one in (first, best)):
        gains.append(gain("p95_ms", "of the 95th percentile", "ms", milliseconds))
    return gains
