"""Starts the servers of a group of variants and makes their requests."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from colcast.bench import encoding
from colcast.bench.requests import (
    RestConnection,
    item_table,
    text_base_path,
    text_requests,
    zoo_data,
    zoo_requests,
)
from colcast.bench.table import Variant
from colcast.bench.turns import Timed
from colcast.client import RankingClient
from colcast.loadtest.measure.closed_loop import ClosedLoop
from colcast.loadtest.measure.correctness import (
    outputs_difference,
    predicts,
    reference_answers,
)
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.loadtest.measure.recording import Recording
from colcast.loadtest.send.connection import Connection, Request
from colcast.loadtest.send.formats import RequestData
from colcast.server import ServerProcess

_CALLS_PER_CLIENT = 4  # the least number of calls per client in a turn
_COMPARED, _REPEATED = 2, 10  # how many answers to compare; how many requests to repeat
# The server stops looking up rows in the state cache after a few thousand rows without a hit.
_WARM_UP_ROWS, _WARM_UP_CALLS = 6000, 24


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

    def distinct(self, size: int) -> int:
        """The number of requests that a variant needs if it repeats none."""
        return warm_up_calls(size, fresh=True) + self.rounds * self.calls + _COMPARED


def warm_up_calls(size: int, *, fresh: bool) -> int:
    """The number of requests of `size` candidates that warm up a server."""
    return max(_WARM_UP_CALLS, _WARM_UP_ROWS // size if fresh else 0)


def base_path(model: str) -> Path:
    """Returns the base path of a zoo model with columnar signatures; makes the model if missing."""
    from colcast.export.cli import silence_tensorflow
    from colcast.zoo.columnar import columnar
    from colcast.zoo.registry import MODELS

    silence_tensorflow()
    if model not in MODELS:
        return text_base_path(model)
    return columnar(MODELS[model].saved_model(), late=True)


@contextmanager
def timed_groups(
    rows: Sequence[Variant], effort: Effort
) -> Iterator[Iterator[tuple[str, list[Timed]]]]:
    """Yields a group's variants at each size; they can be measured until the context ends."""
    sizes = effort.sizes or rows[0].sizes
    with TemporaryDirectory() as folder, ExitStack() as stack:
        if rows[0].part == "text":
            data = {}
        else:
            count = max(map(effort.distinct, sizes)) if any(row.fresh for row in rows) else 0
            count = max(count, _REPEATED + _COMPARED)
            data = {size: zoo_data(_model(rows[0]), size, count) for size in sizes}
        tables = Path(folder)
        if any("{tables}" in flag for row in rows for flag in row.flags):
            item_table(base_path(_model(rows[0])), data, tables)
        servers: dict[tuple[str, tuple[str, ...]], ServerProcess] = {}
        for row in rows:
            key = _model(row), row.flags
            if key not in servers:
                flags = [flag.replace("{tables}", folder) for flag in row.flags]
                server = ServerProcess(key[0], base_path(key[0]), [*flags, *effort.flags])
                servers[key] = stack.enter_context(server)
        running = [servers[_model(row), row.flags] for row in rows]

        def groups() -> Iterator[tuple[str, list[Timed]]]:
            for size in sizes:
                with ExitStack() as connected:
                    yield (
                        f"{rows[0].name}, N = {size}",
                        _timed(rows, running, size, data, effort, connected),
                    )

        yield groups()


def _model(row: Variant) -> str:
    return row.model or row.group


def _timed(
    rows: Sequence[Variant],
    running: Sequence[ServerProcess],
    size: int,
    data: dict[int, list[RequestData]],
    effort: Effort,
    connected: ExitStack,
) -> list[Timed]:
    if rows[0].part == "encoding":
        client = connected.enter_context(RankingClient(running[0].target, _model(rows[0])))
        return encoding.timed(client, rows, size)
    sent = [_requests(row, server, size, data) for row, server in zip(rows, running, strict=True)]
    differences = _differences(running, sent)
    return [
        Timed(row.title, _turns(row, server, requests, size, effort, connected), difference)
        for row, server, requests, difference in zip(rows, running, sent, differences, strict=True)
    ]


def _requests(
    row: Variant, server: ServerProcess, size: int, data: dict[int, list[RequestData]]
) -> list[Request]:
    if row.part == "text":
        return text_requests(_model(row), size, _REPEATED + _COMPARED)
    with RankingClient(server.target, _model(row)) as client:
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


def _turns(
    row: Variant,
    server: ServerProcess,
    requests: Sequence[Request],
    size: int,
    effort: Effort,
    connected: ExitStack,
) -> Callable[[int], Recording]:
    connect: Callable[[], Connection | RestConnection] = partial(Connection, server.target)
    if row.send == "REST":
        connect = partial(RestConnection, server.rest_target, _model(row))
    loop = connected.enter_context(ClosedLoop(connect, row.clients))
    meter, warm_up = ProcessMeter(server.pid), warm_up_calls(size, fresh=row.fresh)

    each = effort.calls if row.fresh else max(effort.calls, _CALLS_PER_CLIENT * row.clients)

    def turn(number: int) -> Recording:
        start, calls = warm_up + number * each, each
        if number < 0:
            start, calls = 0, warm_up
        part = requests[start : start + calls] if row.fresh else requests[:_REPEATED]
        return loop.run(part, calls=calls, meter=meter)

    return turn
