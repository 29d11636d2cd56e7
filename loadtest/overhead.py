"""What the server adds to the model: its CPU per request less that of the graph alone.

The graph alone is run in process on tensors that are ready, by the C++ executable engine_benchmark
that is built beside the server: in a session like the server's, and in one as TensorFlow runs it by
itself. Server and graphs run a few requests each in turn: on a shared machine their difference is
smaller than what an hour changes of either. Cores are kept busy meanwhile (busy_cores.py).
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from colcast.client import RankingClient
from colcast.loadtest.answering import Answering
from colcast.loadtest.busy_cores import cores_kept_busy
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.formats import FORMATS, RequestData, encode
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.variants import Column, Variant, answered
from colcast.server import find_executable

Session = Literal["server", "plain"]

ROUNDS = 21
_CALLS, _WARM_UP_CALLS = 10, 20


_PLAIN, _GRAPH, _SERVER = "plain ms", "graph ms", "server ms"
COLUMNS = (
    Column(_PLAIN, itemgetter(_PLAIN)),
    Column(_GRAPH, itemgetter(_GRAPH)),
    Column(_SERVER, itemgetter(_SERVER)),
    Column("added μs", lambda it: 1000 * (it[_SERVER] - it[_GRAPH]), ".0f"),
    Column("to plain μs", lambda it: 1000 * (it[_SERVER] - it[_PLAIN]), ".0f"),
)


class GraphAlone(Answering):
    """A model's graph in a process of its own, without a server around it."""

    def __init__(self, version_directory: Path, session: Session, folder: Path) -> None:
        """Takes the SavedModel.

        Args:
          version_directory: the one with saved_model.pb.
          session: "server": as the server runs it; "plain": TensorFlow's default executor, one
            thread.
          folder: for the requests.
        """
        super().__init__((engine_benchmark(), session, version_directory))
        self._folder, self._written = folder, itertools.count()

    def prepare(self, requests: Sequence[bytes]) -> list[Path]:
        """What `cpu_seconds` is to be asked with for these serialized PredictRequests."""
        files = [self._folder / f"{self.pid}.{next(self._written)}" for _ in requests]
        for file, request in zip(files, requests, strict=True):
            file.write_bytes(request)
        return files

    def cpu_seconds(self, prepared: Sequence[Path], calls: int) -> float:
        """Runs so many requests, going round them, and returns the CPU time that they took.

        Raises:
          ValueError: engine_benchmark refused the model or a request; the message is its own.
        """
        return float(self.ask(calls, *prepared))


def engine_benchmark() -> Path:
    """The executable that runs the graph alone.

    Raises:
      RuntimeError: it is not built.
    """
    executable = find_executable().with_name("engine_benchmark")
    if not executable.is_file():
        raise RuntimeError(
            f"{executable} is not built; in a checkout, scripts/setup.sh colcast_model_server"
            " colcast_engine engine_benchmark builds what this needs, as make bench does"
        )
    return executable


def overheads(
    target: str,
    model: str,
    version_directory: Path,
    traffic: Mapping[int, Sequence[RequestData]],
    formats: Sequence[str],
    pid: int,
) -> Iterator[tuple[str, list[Variant]]]:
    """What a server, the process `pid`, adds to the graph with one client: a variant per format.

    A turn measures CPU milliseconds per request: "plain ms", the graph as TensorFlow runs it by
    itself, on the columns with the user repeated; "graph ms", the graph as the server runs it for
    the format; "server ms", the server, gRPC included.

    Raises:
      ValueError: engine_benchmark refused the model or the request, the message is its own; or the
        server left a request unanswered.
    """
    with (
        cores_kept_busy(),
        TemporaryDirectory() as folder,
        GraphAlone(version_directory, "plain", Path(folder)) as plain,
        GraphAlone(version_directory, "server", Path(folder)) as graph,
        RankingClient(target, model) as client,
        ClosedLoop(target, 1) as sender,
    ):

        def variant(name: str, data: Sequence[RequestData]) -> Variant:
            columns = plain.prepare([encode(client, "repeated", one).payload for one in data])
            requests = [encode(client, name, one) for one in data]
            prepared = graph.prepare([request.payload for request in requests])
            meter = ProcessMeter(pid)

            def served(calls: int) -> float:
                return answered(sender.run(requests, calls=calls, meter=meter)).server_cpu_seconds

            measures = [
                (_SERVER, served),
                (_PLAIN, lambda calls: plain.cpu_seconds(columns, calls)),
                (_GRAPH, lambda calls: graph.cpu_seconds(prepared, calls)),
            ]

            def turn(number: int) -> dict[str, float]:
                calls = _CALLS if number >= 0 else _WARM_UP_CALLS
                first = number % len(measures)
                in_order = measures[first:] + measures[:first]
                return {what: 1000 * measure(calls) / calls for what, measure in in_order}

            return Variant(FORMATS[name].title, turn)

        for size, data in traffic.items():
            yield f"{model}, N = {size}", [variant(name, data) for name in formats]
