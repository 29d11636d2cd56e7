"""A load test as a gate in CI: thresholds for every series, and the result."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np
from colcast.loadtest.measure.open_loop import kept_up
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
      label: the label of the series.
      threshold: such as `p95 <= 25 ms`.
      measured: such as `31.2 ms`.
      passed: whether the threshold was met.
    """

    label: str
    threshold: str
    measured: str
    passed: bool

    def __str__(self) -> str:
        return (
            f"{self.label}: {self.threshold}: {'passed' if self.passed else 'failed'}, "
            f"{self.measured}"
        )

    def as_json(self) -> dict[str, Any]:
        """The verdict as plain values."""
        return {
            "series": self.label,
            "threshold": self.threshold,
            "measured": self.measured,
            "passed": self.passed,
        }


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
    """The verdicts as JUnit XML: a test case per threshold and series, and one for the answers.

    Args:
      verdicts: the result of `judge`.
      problems: other failures; see Report.problems.
    """
    cases = [(it.label, it.threshold, "" if it.passed else it.measured) for it in verdicts]
    cases.append(("answers", "right, and none refused", "; ".join(problems)))
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
        measured += "; the load generator was late itself"
    return Verdict(result.series.label, str(sla), measured, passed)
