"""What the server adds to the model: its CPU per request less that of the graph alone.

The graph alone is the same session run in process on tensors that are ready, by the C++ executable
engine_benchmark that is built beside the server. The two run a few requests each in turn: on a
shared machine their difference is smaller than what an hour changes of either.

A server waits between the requests of one client, and a core that has waited runs any graph slower:
caches and clocks. So the graph alone pauses between two runs as long as the server does. What it
costs without a pause is measured, too, as the server's lower bound.
"""

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Self

from colcast.client import RankingClient
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.comparison import Rounds
from colcast.loadtest.formats import FORMATS, RequestData, encode
from colcast.loadtest.process import ProcessMeter
from colcast.server import find_executable
from rich.box import SIMPLE
from rich.table import Table

_ROUNDS = Rounds(rounds=21, calls=10, warm_up=20)


@dataclass(frozen=True)
class Overhead:
    """One format at one number of candidates, with one client; medians over the rounds.

    Attributes:
      candidates: N.
      format: its name in `FORMATS`.
      busy_graph_ms: CPU of the graph alone, on ready tensors, per request, without pauses.
      graph_ms: the same with the pauses that the server has between requests.
      server_ms: CPU of the server process per request, gRPC included.
      added_us: microseconds of CPU per request that are not the graph's, pauses on both sides.
      added_to_busy_us: the same against the graph without pauses.
    """

    candidates: int
    format: str
    busy_graph_ms: float
    graph_ms: float
    server_ms: float
    added_us: float
    added_to_busy_us: float


class GraphAlone:
    """A model's graph in a process of its own, without a server around it."""

    def __init__(self, version_directory: Path, requests: Sequence[bytes]) -> None:
        """Takes the SavedModel and serialized PredictRequests to one signature."""
        self._version_directory = version_directory
        self._requests = requests
        self._resources = ExitStack()

    def cpu_seconds(self, calls: int, pause_seconds: float = 0.0) -> float:
        """Runs so many requests, going round them, and returns the CPU time that they took.

        Args:
          calls: how many.
          pause_seconds: idle time before each of them.

        Raises:
          ValueError: engine_benchmark refused the model or a request; the message is its own.
        """
        assert self._process.stdin
        assert self._process.stdout
        with suppress(BrokenPipeError):
            pause_micros = round(1e6 * pause_seconds)
            print(calls, pause_micros, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            self._log.seek(0)
            raise ValueError(self._log.read().strip().splitlines()[-1])
        return float(answer)

    def __enter__(self) -> Self:
        """Loads the model."""
        folder = Path(self._resources.enter_context(tempfile.TemporaryDirectory()))
        files = [folder / str(number) for number in range(len(self._requests))]
        for file, request in zip(files, self._requests, strict=True):
            file.write_bytes(request)
        self._log = self._resources.enter_context((folder / "log").open("w+"))
        benchmark = find_executable().with_name("engine_benchmark")
        command = [str(part) for part in (benchmark, self._version_directory, *files)]
        pipe = subprocess.PIPE
        self._process = self._resources.enter_context(
            subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log, text=True)
        )
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the process."""
        self._process.kill()
        self._resources.close()


def overheads(
    target: str,
    model: str,
    version_directory: Path,
    traffic: Mapping[int, Sequence[RequestData]],
    formats: Sequence[str],
    pid: int,
) -> list[Overhead]:
    """Measures what a server, the process `pid`, adds to the graph: a row a size and format.

    Raises:
      ValueError: engine_benchmark refused the model or the request; the message is its own.
    """
    meter, found = ProcessMeter(pid), []
    with RankingClient(target, model) as client, ClosedLoop(target, 1) as sender:
        for size, data in traffic.items():
            for name in formats:
                requests = [encode(client, name, one) for one in data]
                with GraphAlone(version_directory, [r.payload for r in requests]) as graph:
                    sender.run(requests, calls=_ROUNDS.warm_up)
                    graph.cpu_seconds(_ROUNDS.warm_up)
                    rounds = []
                    for _ in range(_ROUNDS.rounds):
                        sent = sender.run(requests, calls=_ROUNDS.calls, meter=meter)
                        idle = max(0.0, sent.wall_seconds - sent.server_cpu_seconds)
                        paused = graph.cpu_seconds(_ROUNDS.calls, idle / _ROUNDS.calls)
                        busy = graph.cpu_seconds(_ROUNDS.calls)
                        rounds.append((sent.server_cpu_seconds, paused, busy))
                found.append(_row(size, name, rounds))
    return found


def _row(size: int, name: str, rounds: Sequence[tuple[float, float, float]]) -> Overhead:
    """From the CPU seconds of server, pausing graph and busy graph in each round."""
    milliseconds = [[1000 * seconds / _ROUNDS.calls for seconds in one] for one in rounds]
    return Overhead(
        candidates=size,
        format=name,
        busy_graph_ms=median(busy for _, _, busy in milliseconds),
        graph_ms=median(graph for _, graph, _ in milliseconds),
        server_ms=median(server for server, _, _ in milliseconds),
        added_us=1000 * median(server - graph for server, graph, _ in milliseconds),
        added_to_busy_us=1000 * median(server - busy for server, _, busy in milliseconds),
    )


def overhead_table(rows: Sequence[Overhead]) -> Table:
    """What the graph costs and what the server adds, for a terminal."""
    title = "CPU a request with one client: the graph alone, and what the server adds"
    caption = "busy: without the pauses that a server has between requests"
    table = Table(title=title, caption=caption, title_justify="left", box=SIMPLE)
    headers = ("N", "format", "graph ms", "busy ms", "server ms", "added μs", "to busy μs")
    for header in headers:
        table.add_column(header, justify="left" if header == "format" else "right")
    for row in rows:
        milliseconds = (row.graph_ms, row.busy_graph_ms, row.server_ms)
        microseconds = (row.added_us, row.added_to_busy_us)
        table.add_row(
            str(row.candidates),
            FORMATS[row.format].title,
            *(f"{value:.2f}" for value in milliseconds),
            *(f"{value:.0f}" for value in microseconds),
        )
    return table
