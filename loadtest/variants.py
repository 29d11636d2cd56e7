"""The loop and the table of every bench: its variants take turns, round by round.

`asking` and `predicting` make the usual variants; a bench that measures something else gives turns
and columns of its own.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Request
from colcast.loadtest.process import Meter, ProcessMeter
from colcast.loadtest.progress import progress_bar
from colcast.loadtest.recording import Call, Recording
from colcast.loadtest.turns import in_turn
from colcast.server import ServerProcess
from rich.console import Console


@dataclass(frozen=True)
class Variant:
    """What is compared.

    Attributes:
      title: for tables.
      turn: measures it, given the number of the round; round -1 warms up and does not count.
    """

    title: str
    turn: Callable[[int], Any]


@dataclass(frozen=True)
class Column:
    """A figure of a variant.

    Attributes:
      heading: with the unit.
      of: what a turn gave -> the figure.
      form: how it is written.
      over: the rounds' figures -> one.
      compared: whether its ratio to the first variant's follows.
    """

    heading: str
    of: Callable[[Any], Any]
    form: str = ".2f"
    over: Callable[[Sequence[Any]], Any] = np.median
    compared: bool = False


CPU = Column("CPU ms", attrgetter("server_cpu_ms"), ".3f", compared=True)
P50 = Column("p50 ms", lambda it: it.latency_ms(50))
P99 = Column("p99 ms", lambda it: it.latency_ms(99), compared=True)
LONGEST = Column("longest ms", lambda it: it.latency_ms(100), ".1f", max)
BYTES = Column("bytes", attrgetter("bytes_per_request"), ",.0f")
ANSWERS = Column("answers", lambda it: len(it.answered), ",d", sum)
ERRORS = Column("errors", attrgetter("errors"), ",d", sum)
PER_SECOND = Column("per second", attrgetter("per_second"), ",.0f")
COST = (CPU, P50, BYTES)
LATENCY = (ANSWERS, P50, P99, LONGEST)


def other(heading: str, form: str = ".2f", **options: Any) -> Column:
    """A figure among a recording's `others`."""
    return Column(heading, lambda it: it.others.get(heading, float("nan")), form, **options)


@dataclass(frozen=True)
class Line:
    """What was measured of a variant.

    Attributes:
      group: of the variants that took turns.
      title: the variant's.
      figures: by heading.
      ratios: to the first variant of the group, by heading: the median of the rounds' ratios, and
        the least and the greatest of them.
    """

    group: str
    title: str
    figures: dict[str, Any] = field(default_factory=dict)
    ratios: dict[str, tuple[float, float, float]] = field(default_factory=dict)


def _print(line: str) -> None:
    print(line, flush=True)


def measure_variants(
    groups: Iterable[tuple[str, Sequence[Variant]]],
    rounds: int,
    columns: Sequence[Column] = COST,
    tell: Callable[[str], object] = _print,
) -> list[Line]:
    """Measures group after group, and tells a line of a Markdown table as soon as it is known.

    Args:
      groups: names, and the variants that take turns.
      rounds: how many count.
      columns: of the table.
      tell: is given the lines.
    """
    lines: list[Line] = []
    headings = [(it.heading, "of the first")[: 1 + it.compared] for it in columns]
    for text in ("", *markdown_head([*chain.from_iterable(headings)])):
        tell(text)
    for group, variants in groups:

        def figures(variant: Variant, number: int) -> list[Any]:
            given = variant.turn(number)
            advance()
            return [column.of(given) for column in columns]

        steps = len(variants) * (rounds + 1)
        with progress_bar(Console(stderr=True), group or "in turn", steps) as advance:
            for variant in variants:
                variant.turn(-1)
                advance()
            found = in_turn(variants, figures, rounds)  # the first variant goes first
        for variant, own in zip(variants, found, strict=True):
            lines.append(_line(group, variant.title, columns, own, found[0]))
            tell(markdown_row(_cells(lines[-1], columns)))
    return lines


def asking(title: str, call: Callable[[], object], calls: int, pid: int, size: int = 0) -> Variant:
    """So many calls, of `size` bytes each, in a turn; the CPU is the process's `pid`."""

    def turn(_: int) -> Recording:
        return one_by_one(call, lambda done: done < calls, ProcessMeter(pid), size)

    return Variant(title, turn)


def predicting(
    title: str, server: ServerProcess, payloads: Sequence[bytes], calls: int = 0, clients: int = 1
) -> Variant:
    """PredictRequests, each once or, going round them, so many `calls`."""
    requests = [Request(payload, 0) for payload in payloads]

    def turn(_: int) -> Recording:
        with ClosedLoop(server.target, clients) as loop:
            meter = ProcessMeter(server.pid)
            return answered(loop.run(requests, calls=calls or len(requests), meter=meter))

    return Variant(title, turn)


def one_by_one(
    call: Callable[[], object],
    more: Callable[[int], object],
    meter: Meter | None = None,
    size: int = 0,
) -> Recording:
    """Calls again and again while `more` says so, which is given how many have been answered."""
    recording = Recording()
    cpu = meter.cpu_seconds() if meter else float("nan")
    began = time.perf_counter()
    while more(len(recording.calls)):
        sent = time.perf_counter() - began
        call()
        recording.calls.append(Call(sent, sent, time.perf_counter() - began, "OK", 0, size, 0))
    recording.wall_seconds = time.perf_counter() - began
    if meter:
        recording.server_cpu_seconds = meter.cpu_seconds() - cpu
    return recording


def for_seconds(seconds: float, at_least: int = 1) -> Callable[[int], bool]:
    """For `one_by_one`: from now on so long, and so many calls."""
    end = time.perf_counter() + seconds
    return lambda done: done < at_least or time.perf_counter() < end


def answered(recording: Recording) -> Recording:
    """The recording, if all its calls were answered.

    Raises:
      ValueError: some were not; the message has the first error.
    """
    if recording.errors:
        raise ValueError(f"{recording.errors} calls failed: {recording.first_error}")
    return recording


def markdown_head(headings: Sequence[str]) -> list[str]:
    """The first lines of a table whose rows have a group, a title and figures."""
    ruler = ["---", "---", *["---:"] * len(headings)]
    return [markdown_row(["", "", *headings]), markdown_row(ruler)]


def markdown_row(cells: Iterable[str]) -> str:
    """A line of a table, padded so that a terminal shows one, too."""
    group, title, *others = cells
    return f"| {group:<20} | {title:<32} | {' | '.join(f'{cell:>8}' for cell in others)} |"


# Implementation details follow.


def _line(
    group: str,
    title: str,
    columns: Sequence[Column],
    own: Sequence[Sequence[Any]],
    first: Sequence[Sequence[Any]],
) -> Line:
    """From figures per round and column."""
    line = Line(group, title)
    by_column = zip(zip(*own, strict=True), zip(*first, strict=True), strict=True)
    for column, (values, of_first) in zip(columns, by_column, strict=True):
        line.figures[column.heading] = column.over(values)
        if column.compared:
            median, least, greatest = np.quantile(np.divide(values, of_first), (0.5, 0, 1)).tolist()
            line.ratios[column.heading] = median, least, greatest
    return line


def _cells(line: Line, columns: Sequence[Column]) -> Iterator[str]:
    yield from (line.group, line.title)
    for column in columns:
        figure = line.figures[column.heading]
        yield "-" if figure != figure else format(figure, column.form)
        if column.compared:
            yield "{:.3g} ({:.3g} to {:.3g})".format(*line.ratios[column.heading])
