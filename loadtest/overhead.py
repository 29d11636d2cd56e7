"""What the server adds to the model: its CPU per request less that of the graph alone.

The graph alone is the same session run in process on tensors that are ready, by the C++ executable
engine_benchmark that is built beside the server. The two run a few requests each in turn: on a
shared machine their difference is smaller than what an hour changes of either.
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
      graph_ms: CPU of the graph alone, on ready tensors, per request.
      server_ms: CPU of the server process per request, gRPC included.
      added_us: microseconds of CPU per request that are not the graph's.
    """

    candidates: int
    format: str
    graph_ms: float
    server_ms: float
    added_us: float


class GraphAlone:
    """A model's graph in a process of its own, without a server around it."""

    def __init__(self, version_directory: Path, requests: Sequence[bytes]) -> None:
        """Takes the SavedModel and serialized PredictRequests to one signature."""
        self._version_directory = version_directory
        self._requests = requests
        self._resources = ExitStack()

    def cpu_seconds(self, calls: int) -> float:
        """Runs so many requests, going round them, and returns the CPU time that they took.

        Raises:
          ValueError: engine_benchmark refused the model or a request; the message is its own.
        """
        assert self._process.stdin
        assert self._process.stdout
        with suppress(BrokenPipeError):
            print(calls, file=self._process.stdin, flush=True)
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
                    pairs = []
                    for _ in range(_ROUNDS.rounds):
                        sent = sender.run(requests, calls=_ROUNDS.calls, meter=meter)
                        alone = graph.cpu_seconds(_ROUNDS.calls)
                        pairs.append((sent.server_cpu_seconds, alone))
                found.append(_row(size, name, pairs))
    return found


def _row(size: int, name: str, pairs: Sequence[tuple[float, float]]) -> Overhead:
    milliseconds = [[1000 * seconds / _ROUNDS.calls for seconds in pair] for pair in pairs]
    return Overhead(
        candidates=size,
        format=name,
        graph_ms=median(graph for _, graph in milliseconds),
        server_ms=median(server for server, _ in milliseconds),
        added_us=1000 * median(server - graph for server, graph in milliseconds),
    )


def overhead_table(rows: Sequence[Overhead]) -> Table:
    """What the graph costs and what the server adds, for a terminal."""
    title = "CPU a request with one client: the graph alone, and what the server adds"
    table = Table(title=title, title_justify="left", box=SIMPLE)
    for header in ("N", "format", "graph ms", "server ms", "added μs"):
        table.add_column(header, justify="left" if header == "format" else "right")
    for row in rows:
        title = FORMATS[row.format].title
        cells = (f"{row.graph_ms:.2f}", f"{row.server_ms:.2f}", f"{row.added_us:.0f}")
        table.add_row(str(row.candidates), title, *cells)
    return table
