"""The result of comparing two servers: problems, thresholds, plain values."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

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

_LIMITS: tuple[tuple[str, str, Callable[[OutputAgreement], Largest | PerRequest | None]], ...] = (
    ("max_difference", "difference", lambda it: it.largest_difference),
    ("max_relative_difference", "relative difference", lambda it: it.largest_relative_difference),
    ("min_top10_overlap", "top-10 overlap", lambda it: it.top_10_overlap),
    ("min_correlation", "rank correlation", lambda it: it.rank_correlation),
)
"""Each option that limits all outputs: its name in verdicts, and what it limits."""


@dataclass
class CompareReport:
    """The result of a comparison.

    Attributes:
      settings: the options by name, printed unchanged.
      sides: descriptions of A and B, with their formats.
      agreement: how far the answers agree.
      figures: A's and B's cost; empty if it was not measured.
      limits: the values of options in `_LIMITS`; None for no limit.
      timed: B's format in `figures`.
    """

    settings: Mapping[str, str]
    sides: tuple[str, str]
    agreement: Agreement
    figures: Sequence[Figures] = ()
    limits: Mapping[str, float | None] = field(default_factory=dict)
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
        both = [it for it in self.agreement.refusals if "OK" not in it.codes]
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
        most = max(outputs, key=lambda it: it.largest_difference.difference)
        if any(it.differing for it in outputs):
            parts = [f"{most.name}: largest difference {most.largest_difference}"]
            for _, name, of_output in _LIMITS[2:]:
                figure = of_output(most)
                parts += [f"{name} {figure.mean:.4g}"] if isinstance(figure, PerRequest) else []
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
            "other_forms": [asdict(it) for it in found.other_forms],
            "outputs": finite(list(found.outputs)),
            "figures": finite(dict(zip("AB", self.figures, strict=False))),
            "passed": self.passed,
            "thresholds": list(map(asdict, self.verdicts)),
            "notes": self.notes,
            "problems": self.problems,
        }


def _first_refusal(refusal: Refusal, place: int) -> str:
    request = f"request {refusal.request}" + (refusal.format and f", {refusal.format}")
    return f"{request}: {refusal.codes[place]}: {refusal.messages[place]}"


def _judged(
    outputs: Sequence[OutputAgreement], limits: Mapping[str, float | None]
) -> Iterator[Verdict]:
    for option, what, of_output in _LIMITS:
        limit = limits.get(option)
        if limit is None:
            continue
        for it in outputs:
            measured = of_output(it)
            if isinstance(measured, Largest):
                kept = measured.difference <= limit
                yield Verdict(it.name, f"{what} <= {limit:g}", str(measured), kept)
            elif measured:
                kept = measured.mean >= limit
                yield Verdict(it.name, f"{what} >= {limit:g}", str(measured), kept)
        if option.startswith("min_") and not any(map(of_output, outputs)):
            nothing = "no request has enough candidates with one score each"
            yield Verdict("all outputs", f"{what} >= {limit:g}", nothing, False)
