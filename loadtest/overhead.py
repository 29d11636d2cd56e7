"""What the server adds to the model: its CPU per request less that of the graph alone.

The graph alone is the same session run in process on tensors that are ready, by the C++
executable engine_benchmark that is built beside the server.
"""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colcast.client import RankingClient
from colcast.loadtest.formats import FORMATS, RequestData, encode
from colcast.loadtest.side_by_side import Line
from colcast.server import find_executable
from rich.box import SIMPLE
from rich.table import Table

_SECONDS = 0.5


@dataclass(frozen=True)
class Overhead:
    """One format at one number of candidates, with one client.

    Attributes:
      candidates: N.
      format: its name in `FORMATS`.
      graph_ms: CPU of the graph alone, on ready tensors, per request.
      server_ms: CPU of the server process per request, gRPC included.
    """

    candidates: int
    format: str
    graph_ms: float
    server_ms: float

    @property
    def added_us(self) -> float:
        """Microseconds of CPU per request that are not the graph's."""
        return 1000 * (self.server_ms - self.graph_ms)


def overheads(
    target: str,
    model: str,
    version_directory: Path,
    traffic: Mapping[int, Sequence[RequestData]],
    lines: Sequence[Line],
) -> list[Overhead]:
    """Measures the graph alone for each line of a comparison that was made on `target`.

    Raises:
      ValueError: engine_benchmark refused the model or the request; the message is its own.
    """
    found = []
    with RankingClient(target, model) as client:
        for line in lines:
            requests = [
                encode(client, line.format, data).payload for data in traffic[line.candidates]
            ]
            graph_ms = _graph_cpu_ms(version_directory, requests)
            found.append(Overhead(line.candidates, line.format, graph_ms, line.alone.server_cpu_ms))
    return found


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


def _graph_cpu_ms(version_directory: Path, requests: Sequence[bytes]) -> float:
    benchmark = find_executable().with_name("engine_benchmark")
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(number) for number in range(len(requests))]
        for file, request in zip(files, requests, strict=True):
            file.write_bytes(request)
        command = [str(part) for part in (benchmark, version_directory, _SECONDS, *files)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip().splitlines()[-1])
    return float(json.loads(done.stdout)["graph_cpu_ms"])
