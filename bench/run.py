"""Starts the servers of the selected rows, measures them, and writes the table."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from colcast.bench.encoding import encoded_in_turn
from colcast.bench.measure import Line, Tell, head, lines, measure
from colcast.bench.requests import (
    item_table,
    text_base_path,
    text_requests,
    zoo_data,
    zoo_requests,
)
from colcast.bench.table import Variant, groups, selected
from colcast.client import RankingClient
from colcast.loadtest.measure.correctness import outputs_difference, predicts, reference_answers
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.loadtest.measure.recording import finite
from colcast.loadtest.measure.run import Options
from colcast.loadtest.measure.series import Series, Target
from colcast.loadtest.report.output import make_folder
from colcast.loadtest.report.report import machine
from colcast.loadtest.send.connection import Request
from colcast.loadtest.send.formats import RequestData
from colcast.server import ServerProcess
from rich.console import Console

_CALLS_PER_CLIENT = 4  # the least number of calls per client in a turn
_COMPARED, _REPEATED = 2, 10  # how many answers to compare; how many requests to repeat
# The server stops looking up rows in the state cache after a few thousand rows without a hit.
_WARM_UP_ROWS, _WARM_UP_CALLS = 6000, 24
_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    Attributes:
      rounds: number of rounds; every variant has one turn per round.
      calls: number of calls in a turn.
      sizes: numbers of candidates per request; if empty, the table's.
      flags: additional flags of every server.
    """

    rounds: int = 10
    calls: int = 20
    sizes: tuple[int, ...] = ()
    flags: tuple[str, ...] = ()

    def options(self, row: Variant, size: int) -> Options:
        """How the variants of a group are measured at a size; all are alike in what matters."""
        fresh_calls = _WARM_UP_ROWS // size if row.fresh else 0
        return Options(
            windows=self.rounds,
            window_calls=max(self.calls, 0 if row.fresh else _CALLS_PER_CLIENT * row.clients),
            warm_up_calls=max(_WARM_UP_CALLS, fresh_calls),
            timeout_seconds=_TIMEOUT_SECONDS,
            keep_every=0,
        )

    def distinct(self, rows: Sequence[Variant], size: int) -> int:
        """The number of different requests that a group needs."""
        fresh = [self.options(row, size) for row in rows if row.fresh]
        needed = [of.warm_up_calls + of.windows * (of.window_calls or 0) for of in fresh]
        return max([_REPEATED, *needed]) + _COMPARED


def run(names: Sequence[str], effort: Effort, folder: Path, console: Console) -> list[Line]:
    """Measures one group after another, and adds each to the table."""
    rows = selected(names)
    make_folder(folder)
    document: list[str] = []

    def tell(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)
        document.append(line)

    for line in (machine(), "", *head()):
        tell(line)
    found: list[Line] = []
    for _, variants in groups(rows):
        found += _measured(variants, effort, tell)
    (folder / "bench.md").write_text("\n".join([*document, ""]))
    values = finite({"machine": machine(), "lines": found})
    (folder / "bench.json").write_text(json.dumps(values, indent=1, allow_nan=False))
    return found


def base_path(model: str) -> Path:
    """Returns the base path of a zoo model with columnar signatures; makes the model if missing."""
    from colcast.export.cli import silence_tensorflow
    from colcast.zoo.columnar import columnar
    from colcast.zoo.registry import MODELS

    silence_tensorflow()
    if model not in MODELS:
        return text_base_path(model)
    return columnar(MODELS[model].saved_model(), late=True)


def _measured(rows: Sequence[Variant], effort: Effort, tell: Tell) -> list[Line]:
    """Starts the servers of a group and measures its variants at each size."""
    first, model = rows[0], rows[0].served
    sizes = effort.sizes or first.sizes
    found: list[Line] = []
    with TemporaryDirectory() as folder, ExitStack() as stack:
        data: dict[int, list[RequestData]] = {}
        if first.part != "text":
            data = {size: zoo_data(model, size, effort.distinct(rows, size)) for size in sizes}
        if any("{tables}" in flag for row in rows for flag in row.flags):
            item_table(base_path(model), data, Path(folder))
        servers: dict[tuple[str, tuple[str, ...]], ServerProcess] = {}
        for row in rows:
            if (key := (row.served, row.flags)) not in servers:
                flags = [flag.replace("{tables}", folder) for flag in row.flags]
                server = ServerProcess(key[0], base_path(key[0]), [*flags, *effort.flags])
                servers[key] = stack.enter_context(server)
        running = [servers[row.served, row.flags] for row in rows]
        meters = {one.target: ProcessMeter(one.pid) for one in running}
        for size in sizes:
            name = f"{first.name}, N = {size}"
            if first.part == "encoding":
                with RankingClient(running[0].target, model) as client:
                    rounds = encoded_in_turn(client, rows, size, effort.rounds)
                found += lines(name, rounds, [float("nan")] * len(rows), tell)
                continue
            sent = [
                _requests(row, server, size, data)
                for row, server in zip(rows, running, strict=True)
            ]
            differences = _differences(running, sent)
            series = [
                Series(
                    Target("", server.target),
                    row.title,
                    requests if row.fresh else requests[:_REPEATED],
                    difference=difference,
                    fresh=row.fresh,
                )
                for row, server, requests, difference in zip(
                    rows, running, sent, differences, strict=True
                )
            ]
            options = effort.options(next((row for row in rows if row.fresh), first), size)
            found += measure(name, series, first.clients, dict(meters), options, tell)
    return found


def _requests(
    row: Variant, server: ServerProcess, size: int, data: dict[int, list[RequestData]]
) -> list[Request]:
    if row.part == "text":
        return text_requests(row.served, size, _REPEATED + _COMPARED)
    with RankingClient(server.target, row.served) as client:
        return zoo_requests(client, row.send, data[size], size)


def _differences(
    running: Sequence[ServerProcess], sent: Sequence[Sequence[Request]]
) -> list[float]:
    """Each variant's largest difference from the first variant's scores; NaN if not compared."""
    answers = [
        reference_answers(server.target, requests[-_COMPARED:]) if predicts(requests) else []
        for server, requests in zip(running, sent, strict=True)
    ]
    return [
        max(map(outputs_difference, answers[0], own)) if own else float("nan") for own in answers
    ]
