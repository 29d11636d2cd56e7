"""The same candidates in several formats against one server: figures and score differences."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from colcast.loadtest.figures import Figures, figures_of
from colcast.loadtest.formats import FORMATS, RequestData
from colcast.loadtest.process import Meter, ProcessMeter
from colcast.loadtest.run import Options, with_clients
from colcast.loadtest.series import Target, prepare

_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Line:
    """One format at one number of candidates.

    Attributes:
      candidates: N.
      format: its name in `FORMATS`.
      alone: figures with one client: its latencies are the server's own.
      together: figures with several clients: throughput, and CPU per request under load.
      difference: the largest difference of any output value from the first format's answer.
    """

    candidates: int
    format: str
    alone: Figures
    together: Figures
    difference: float

    def as_json(self) -> dict[str, Any]:
        """In plain values."""
        return {
            "candidates": self.candidates,
            "format": self.format,
            "largest_score_difference": self.difference,
            "one_client": self.alone.as_json(),
            "several_clients": self.together.as_json(),
        }


@dataclass(frozen=True)
class Effort:
    """How much to measure: `rounds` of `calls` per format, with one client and with `clients`."""

    clients: int = 4
    rounds: int = 10
    calls: int = 20

    def steps(self, sizes: int, formats: int) -> int:
        """How often `progress` will be called."""
        return sizes * formats * 2 * self.rounds

    @property
    def options(self) -> Options:
        """For the engine."""
        return Options(
            windows=self.rounds,
            window_calls=self.calls,
            timeout_seconds=_TIMEOUT_SECONDS,
            keep_every=0,
        )


def side_by_side(
    address: str,
    model: str,
    traffic: Mapping[int, Sequence[RequestData]],
    formats: Sequence[str],
    *,
    pid: int | None = None,
    effort: Effort = Effort(),
    progress: Callable[[], None] = lambda: None,
) -> list[Line]:
    """Measures every format at every size; formats of one size are interleaved.

    Args:
      address: HOST:PORT of the server.
      model: the served model's name.
      traffic: N -> requests of N candidates.
      formats: names in `FORMATS`; the others' scores are compared with the first one's.
      pid: the server's process, if it runs on this machine.
      effort: how much to send.
      progress: called `effort.steps` times.

    Returns:
      A line per size and format, in the order given.

    Raises:
      RuntimeError: the server cannot answer a format.
    """
    meters: dict[str, Meter] = {} if pid is None else {address: ProcessMeter(pid)}
    lines = []
    for size, data in traffic.items():
        series, left_out = prepare([Target("", address)], model, formats, data)
        if left_out:
            raise RuntimeError("; ".join(map(str, left_out)))
        alone, together = (
            with_clients(series, clients, meters, effort.options, lambda *_: progress())
            for clients in (1, effort.clients)
        )
        lines += [
            Line(
                size,
                one.format,
                figures_of(by_itself.recording),
                figures_of(shared.recording),
                one.difference,
            )
            for one, by_itself, shared in zip(series, alone, together, strict=True)
        ]
    return lines


def format_costs(lines: Sequence[Line]) -> list[tuple[str, str, float]]:
    """Size, format and server CPU of each line, for `share_chart`."""
    return [
        (f"N = {it.candidates}", FORMATS[it.format].title, it.together.server_cpu_ms)
        for it in lines
    ]
