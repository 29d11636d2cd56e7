"""Measures a group's variants in turn, with the load test's runner, and formats their lines."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from colcast.loadtest.measure.meters import Meter
from colcast.loadtest.measure.recording import Recording, milliseconds
from colcast.loadtest.measure.run import Options, with_clients
from colcast.loadtest.measure.series import Series
from colcast.loadtest.report.output import windows_shown

HEADINGS = ("CPU ms", "of the first", "per second", "p50 ms", "bytes", "difference")
_WIDTHS = (8, 21, 11, 8, 12, 11)

Tell = Callable[[str], object]


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
      difference: the largest difference from the first variant's scores, as a share of the largest
        score in a request; NaN if not compared.
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
        cells += [milliseconds(self.p50_ms), f"{self.request_bytes:,.0f}", compared]
        return _row(self.group, self.title, cells)


def head() -> list[str]:
    """The first two lines of the table."""
    headings = _row("", "", HEADINGS)
    return [headings, "─" * len(headings)]


def measure(
    group: str,
    series: Sequence[Series],
    clients: int,
    meters: dict[str, Meter],
    options: Options,
    tell: Tell,
) -> list[Line]:
    """Measures variants in turn and prints a line for each.

    Args:
      group: the name of the group in the table.
      series: the variants; a series' format is the variant's title.
      clients: the number of clients that wait for their answers.
      meters: the meters of the servers.
      options: how to measure.
      tell: prints a line.
    """
    rounds: dict[str, list[Recording]] = {one.format: [] for one in series}
    with windows_shown(group, len(series) * options.windows, 0) as begin:

        def note(one: Series, recording: Recording) -> None:
            if recording.errors:
                raise ValueError(f"{one.format}: calls failed: {recording.first_error}")
            rounds[one.format].append(recording)
            begin()

        with_clients(series, clients, meters, options, note)
    return lines(group, rounds, [one.difference for one in series], tell)


def lines(
    group: str, rounds: dict[str, list[Recording]], differences: Sequence[float], tell: Tell
) -> list[Line]:
    """Prints and returns a line for each variant, from its recording in every round."""
    first = [recording.server_cpu_ms for recording in next(iter(rounds.values()))]
    found = [
        _line(group, title, own, first, difference)
        for (title, own), difference in zip(rounds.items(), differences, strict=True)
    ]
    for number, line in enumerate(found):
        tell(str(line if number == 0 else replace(line, group="")))
    tell("")
    return found


def _line(
    group: str, title: str, rounds: Sequence[Recording], first: Sequence[float], difference: float
) -> Line:
    cpu = [recording.server_cpu_ms for recording in rounds]
    middle, least, greatest = np.quantile(np.divide(cpu, first), (0.5, 0, 1)).tolist()
    return Line(
        group=group,
        title=title,
        cpu_ms=float(np.median(cpu)),
        share=(middle, least, greatest),
        per_second=float(np.median([recording.per_second for recording in rounds])),
        p50_ms=float(np.median([recording.latency_ms(50) for recording in rounds])),
        request_bytes=float(np.median([recording.bytes_per_request for recording in rounds])),
        difference=difference,
    )


def _row(group: str, title: str, cells: Sequence[str]) -> str:
    aligned = [f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)]
    return f"{group:<26} {title:<19} {''.join(aligned)}"
