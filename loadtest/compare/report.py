"""The result of comparing two servers: problems, thresholds, plain values."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from colcast.loadtest.compare.agreement import (
    Agreement,
    Largest,
    OutputAgreement,
    PerRequest,
    Refusal,
)
from colcast.loadtest.measure.recording import Figures, finite, milliseconds, share
from colcast.loadtest.report.gate import Verdict
from colcast.loadtest.report.report import machine


@dataclass(frozen=True)
class Limits:
    """Limits for every output; None for no limit.

    Attributes:
      difference: the largest absolute difference.
      relative_difference: the largest difference as a share of the larger of the two values.
      top10_overlap: the mean share of candidates that are among the ten highest scores of both.
      correlation: the mean rank correlation.
    """

    difference: float | None = None
    relative_difference: float | None = None
    top10_overlap: float | None = None
    correlation: float | None = None


@dataclass
class CompareReport:
    """The result of a comparison.

    Attributes:
      settings: the options by name, printed unchanged.
      sides: descriptions of A and B, with their formats.
      agreement: how far the answers agree.
      figures: A's and B's cost; empty if it was not measured.
      limits: the limits for the outputs.
      timed: B's format in `figures`.
    """

    settings: Mapping[str, str]
    sides: tuple[str, str]
    agreement: Agreement
    figures: Sequence[Figures] = ()
    limits: Limits = Limits()
    timed: str = ""
    machine: str = field(default_factory=lambda: machine())

    @property
    def problems(self) -> list[str]:
        """Failures other than missed thresholds: missing or incomparable answers."""
        found, total = self.agreement, self.agreement.requests
        problems = []
        for place, (name, other) in enumerate((("A", "B"), ("B", "A"))):
            refused = [it for it in found.refusals if it.codes[1 - place] == "OK"]
            if refused:
                what = f"{len(refused):,} of {total:,} requests that {other} answers"
                problems.append(f"{name} refuses {what}, first {_first_refusal(refused[0], place)}")
        for other_form in found.other_forms:
            problems.append(
                f"{other_form.name}: a different form in {other_form.requests:,} of "
                f"{found.answered:,} answers, first in request {other_form.first}: "
                f"{other_form.form}"
            )
        if not found.answered:
            problems.append("no request was answered by both")
        return problems

    @property
    def timed_side(self) -> str:
        """B, with the format that was timed."""
        return f"B ({self.timed})" if self.timed else "B"

    @property
    def notes(self) -> list[str]:
        """Caveats: requests that both sides refused, calls that failed."""
        found = []
        both = list(self._refused_by_both())
        if both:
            what = f"{len(both):,} of {self.agreement.requests:,} requests were refused by both"
            found.append(
                f"{what}, first {_first_refusal(both[0], 0)} by A, {both[0].codes[1]} by B"
            )
        for name, figures in zip("AB", self.figures, strict=False):
            if figures.errors:
                codes = ", ".join(f"{n:,} {c}" for c, n in figures.codes.items() if c != "OK")
                found.append(
                    f"{name}: failed calls during timing: {codes}; the first: {figures.first_error}"
                )
        return found

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict of every threshold for every output to which it applies."""
        return list(_judged(self.agreement.outputs, self.limits))

    @property
    def passed(self) -> bool:
        """Whether there is no problem and every threshold is met."""
        return not self.problems and all(verdict.passed for verdict in self.verdicts)

    @property
    def headline(self) -> str:
        """One sentence: the output that differs most, and B's cost; empty without an answer."""
        outputs = self.agreement.outputs
        if not outputs:
            return ""
        most = max(outputs, key=lambda it: it.absolute.difference)
        if any(it.differing for it in outputs):
            parts = [f"{most.name}: largest difference {largest_text(most.absolute)}"]
            for name, figure in (
                ("top-10 overlap", most.top10),
                ("rank correlation", most.correlation),
            ):
                parts += [f"{name} {figure.mean:.4g}"] if figure else []
        else:
            parts = [f"all {sum(it.values for it in outputs):,} values are equal"]
        if self.figures:
            a, b = self.figures
            for name in ("server_cpu_ms", "p95_ms"):
                before, after = getattr(a, name), getattr(b, name)
                if (of := share(after, before)) != "-":
                    what = "server CPU" if name == "server_cpu_ms" else "95th percentile"
                    values = f"{milliseconds(after)} against {milliseconds(before)} ms"
                    parts.append(f"{self.timed_side} takes {of} of A's {what} ({values})")
        return "; ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """The report as plain values; null for infinite or unmeasured ones."""
        found = self.agreement
        return {
            "settings": dict(self.settings),
            "machine": self.machine,
            "sides": dict(zip("AB", self.sides, strict=True)),
            "headline": self.headline,
            "requests": found.requests,
            "answered_by_both": found.answered,
            "codes": dict(zip("AB", map(dict, found.codes), strict=True)),
            "refusals": [asdict(it) for it in found.refusals],
            "refused_alike": [asdict(it) for it in found.alike],
            "other_forms": [asdict(it) for it in found.other_forms],
            "outputs": [_plain_output(it) for it in found.outputs],
            "figures": finite(dict(zip("AB", self.figures, strict=False))),
            "passed": self.passed,
            "thresholds": list(map(asdict, self.verdicts)),
            "notes": self.notes,
            "problems": self.problems,
        }

    def _refused_by_both(self) -> Iterable[Refusal]:
        other_codes = [it for it in self.agreement.refusals if "OK" not in it.codes]
        return sorted([*self.agreement.alike, *other_codes], key=lambda it: it.request)


def largest_text(largest: Largest) -> str:
    """The difference, its position and both values, as text."""
    if not largest.difference:
        return "0"
    of = "" if largest.candidate is None else f", candidate {largest.candidate}"
    values = f"{_value_text(largest.a)} against {_value_text(largest.b)}"
    return f"{difference_text(largest)} (request {largest.request}{of}: {values})"


def difference_text(largest: Largest) -> str:
    """The difference alone, as text."""
    return f"{largest.difference:.3g}" if math.isfinite(largest.difference) else "infinite"


def per_request_text(figure: PerRequest | None) -> str:
    """The mean, and the lowest value with its request, as text."""
    if figure is None:
        return "-"
    if figure.lowest == figure.mean:
        return f"{figure.mean:.4g}"
    return f"{figure.mean:.4g} (lowest {figure.lowest:.4g}, request {figure.request})"


def _first_refusal(refusal: Refusal, place: int) -> str:
    request = f"request {refusal.request}" + (refusal.format and f", {refusal.format}")
    return f"{request}: {refusal.codes[place]}: {refusal.messages[place]}"


def _judged(outputs: Sequence[OutputAgreement], limits: Limits) -> Iterator[Verdict]:
    upper = (("difference", limits.difference), ("relative difference", limits.relative_difference))
    for what, limit in upper:
        for it in outputs if limit is not None else ():
            largest = it.absolute if what == "difference" else it.relative
            kept = limit is not None and largest.difference <= limit
            yield Verdict(it.name, f"{what} <= {limit:g}", largest_text(largest), kept)
    lower = (
        ("top-10 overlap", limits.top10_overlap, [it.top10 for it in outputs]),
        ("rank correlation", limits.correlation, [it.correlation for it in outputs]),
    )
    for what, limit, figures in lower:
        if limit is None:
            continue
        measured = [
            (it.name, figure) for it, figure in zip(outputs, figures, strict=True) if figure
        ]
        for name, figure in measured:
            text = per_request_text(figure)
            yield Verdict(name, f"{what} >= {limit:g}", text, figure.mean >= limit)
        if not measured:
            nothing = "no request has enough candidates with one score each"
            yield Verdict("all outputs", f"{what} >= {limit:g}", nothing, False)


def _plain_output(it: OutputAgreement) -> dict[str, Any]:
    return {
        "name": it.name,
        "values": it.values,
        "differing": it.differing,
        "largest_difference": _plain_largest(it.absolute),
        "largest_relative_difference": _plain_largest(it.relative),
        "top_10_overlap": it.top10 and asdict(it.top10),
        "rank_correlation": it.correlation and asdict(it.correlation),
        "nan": dict(zip("AB", it.nan, strict=True)),
        "infinite": dict(zip("AB", it.infinite, strict=True)),
    }


def _plain_largest(largest: Largest) -> dict[str, Any]:
    """The difference as plain values; values that JSON lacks (NaN, bytes) become text."""
    return {
        "difference": finite(largest.difference),
        "request": largest.request,
        "candidate": largest.candidate,
        "a": _plain(largest.a),
        "b": _plain(largest.b),
        "text": largest_text(largest),
    }


def _plain(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and math.isfinite(plain):
        return plain
    return plain if isinstance(plain, int | None) else _value_text(plain)


def _value_text(value: Any) -> str:
    if isinstance(value, bytes):
        return repr(value.decode(errors="backslashreplace"))
    if isinstance(value, float | np.floating):
        return "NaN" if np.isnan(value) else f"{value:.6g}"
    return str(value)
