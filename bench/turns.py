"""Measures variants in turn, round by round, and formats the lines of the table."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from colcast.loadtest.measure.recording import Recording, milliseconds
from colcast.loadtest.measure.run import in_turn
from colcast.loadtest.report.output import progress_bar
from rich.console import Console

HEADINGS = ("CPU ms", "of the first", "per second", "p50 ms", "bytes", "difference")
_WIDTHS = (8, 21, 11, 8, 12, 11)


@dataclass(frozen=True)
class Timed:
    """A variant that can be measured.

    Attributes:
      title: its name in the table.
      turn: measures it in a round; round -1 is the warm-up and does not count.
      difference: the largest difference from the first variant's scores, as a share of the largest
        score in a request; NaN if not compared.
    """

    title: str
    turn: Callable[[int], Recording]
    difference: float = math.nan


@dataclass(frozen=True)
class Line:
    """A variant's figures: medians over the rounds.

    Attributes:
      group: the variant's group.
      title: the variant's title.
      cpu_ms: the server's CPU per request, or the client's if there is no server.
      share: CPU relative to the group's first variant in the same round: median, least, greatest.
      per_second: answered requests per second.
      p50_ms: median latency.
      request_bytes: bytes per request.
      difference: see Timed.
    """

    group: str
    title: str
    cpu_ms: float
    share: tuple[float, float, float]
    per_second: float
    p50_ms: float
    request_bytes: float
    difference: float

    def __str__(self) -> str:
        ratio = "{:.2f} ({:.2f} to {:.2f})".format(*self.share)
        compared = "-" if math.isnan(self.difference) else f"{self.difference:.1g}"
        cells = [f"{self.cpu_ms:.3f}", ratio, f"{self.per_second:,.0f}"]
        return _row(
            self.group,
            self.title,
            [*cells, milliseconds(self.p50_ms), f"{self.request_bytes:,.0f}", compared],
        )


def measure(
    group: str, variants: Sequence[Timed], rounds: int, tell: Callable[[str], object]
) -> list[Line]:
    """Measures the variants of a group in turn and prints a line for each.

    Raises:
      ValueError: calls failed; the message has the first error.
    """
    steps = len(variants) * (rounds + 1)
    with progress_bar(Console(stderr=True), group, steps) as advance:

        def turn(one: Timed, number: int) -> Recording:
            recording = one.turn(number)
            advance()
            if recording.errors:
                raise ValueError(f"{one.title}: calls failed: {recording.first_error}")
            return recording

        for one in variants:
            turn(one, -1)
        found = in_turn(variants, turn, rounds)
    first = [recording.server_cpu_ms for recording in found[0]]
    lines = [_line(group, one, own, first) for one, own in zip(variants, found, strict=True)]
    for number, line in enumerate(lines):
        tell(str(line if number == 0 else replace(line, group="")))
    tell("")
    return lines


def head() -> list[str]:
    """The first two lines of the table."""
    headings = _row("", "", HEADINGS)
    return [headings, "─" * len(headings)]


def _line(group: str, one: Timed, rounds: Sequence[Recording], first: Sequence[float]) -> Line:
    cpu = [recording.server_cpu_ms for recording in rounds]
    middle, least, greatest = np.quantile(np.divide(cpu, first), (0.5, 0, 1)).tolist()
    return Line(
        group=group,
        title=one.title,
        cpu_ms=float(np.median(cpu)),
        share=(middle, least, greatest),
        per_second=float(np.median([recording.per_second for recording in rounds])),
        p50_ms=float(np.median([recording.latency_ms(50) for recording in rounds])),
        request_bytes=float(np.median([recording.bytes_per_request for recording in rounds])),
        difference=one.difference,
    )


def _row(group: str, title: str, cells: Sequence[str]) -> str:
    aligned = [f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)]
    return f"{group:<26} {title:<19} {''.join(aligned)}"
