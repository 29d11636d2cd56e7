"""The same candidates in several formats against one server: figures and score differences."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from colcast.client import RankingClient
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.comparison import Rounds, compare
from colcast.loadtest.correctness import expected_answers, outputs_difference, reference_answers
from colcast.loadtest.figures import Figures, figures_of
from colcast.loadtest.formats import RequestData, encode
from colcast.loadtest.process import ProcessMeter

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
    """How much to measure."""

    clients: int = 4
    rounds: Rounds = Rounds()  # noqa: RUF009  frozen

    def steps(self, sizes: int, formats: int) -> int:
        """How often `progress` will be called."""
        return sizes * formats * 2 * self.rounds.rounds


def side_by_side(
    target: str,
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
      target: HOST:PORT of the server.
      model: the served model's name.
      traffic: N -> requests of N candidates.
      formats: names in `FORMATS`; the others' scores are compared with the first one's.
      pid: the server's process, if it runs on this machine.
      effort: how much to send.
      progress: called `effort.steps` times.

    Returns:
      A line a size and format, in the order given.

    Raises:
      RuntimeError: the server refuses a request.
      colcast.client.SchemaError: the model has no signature for a format.
    """
    meter = None if pid is None else ProcessMeter(pid)
    lines = []
    for size, data in traffic.items():
        with RankingClient(target, model, timeout_seconds=_TIMEOUT_SECONDS) as client:
            requests = {name: [encode(client, name, one) for one in data] for name in formats}
        answers = {name: reference_answers(target, requests[name]) for name in formats}
        runs = []
        for clients in (1, effort.clients):
            with ClosedLoop(target, clients, timeout_seconds=_TIMEOUT_SECONDS) as senders:
                runs.append(
                    compare(requests, senders, effort.rounds, meter=meter, progress=progress)
                )
        alone, together = runs
        for name in formats:
            expected = expected_answers(requests[name], answers[name], answers[formats[0]])
            difference = max(map(outputs_difference, expected, answers[name]))
            figures = figures_of(alone[name]), figures_of(together[name])
            lines.append(Line(size, name, *figures, difference))
    return lines
