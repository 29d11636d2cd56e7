"""The same requests to one model on servers started with different flags, in turn."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from colcast.client import RankingClient
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Request
from colcast.loadtest.correctness import outputs_difference, reference_answers
from colcast.loadtest.formats import RequestData, encode
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.recording import Recording
from colcast.loadtest.variants import Line, Variant, answered, measure_variants
from colcast.server import ServerProcess

_HELD_BACK, _REPEATED = 2, 10
# A server that finds hardly anything again stops looking after some thousand rows: by then it has.
_WARM_UP_ROWS, _WARM_UP_CALLS = 6000, 24


@dataclass(frozen=True)
class ServerVariant:
    """What is sent to a server with which flags.

    Attributes:
      title: for tables.
      format: a name in `FORMATS`.
      flags: of the server, one of its own per variant.
      cached: whether the same requests come again and again; otherwise every request is of a user
        and of items that the server has not seen.
    """

    title: str
    format: str
    flags: tuple[str, ...] = ()
    cached: bool = False


@dataclass(frozen=True)
class Effort:
    """`rounds` of `calls` per variant, in turn, with `clients` that wait for their answers."""

    clients: int = 4
    rounds: int = 5
    calls: int = 12

    def distinct(self, size: int) -> int:
        """How many different requests of `size` candidates a variant needs that repeats none."""
        return warm_up_calls(size) + self.rounds * self.calls + _HELD_BACK


def warm_up_calls(size: int) -> int:
    """How many requests of `size` candidates warm a server up."""
    return max(_WARM_UP_CALLS, _WARM_UP_ROWS // size)


@contextmanager
def servers(model: str, base_path: Path, *flags: Sequence[str]) -> Iterator[list[ServerProcess]]:
    """A server for each list of flags."""
    with ExitStack() as started:
        yield [started.enter_context(ServerProcess(model, base_path, own)) for own in flags]


def compare_servers(
    model: str,
    base_path: Path,
    variants: Sequence[ServerVariant],
    requests: Callable[[int, int], Sequence[RequestData]],
    sizes: Sequence[int],
    effort: Effort,
    tell: Callable[[str], object] = print,
) -> tuple[list[Line], float]:
    """Measures every variant at every size; the variants of one size take turns.

    Args:
      model: the model's name.
      base_path: of its versions.
      variants: the others' scores are compared with the first one's.
      requests: (N, count) -> as many requests with N candidates each, all different.
      sizes: N.
      effort: how much to send.
      tell: is given the lines of a table.

    Returns:
      A line per size and variant, and the largest difference of a score from the first variant's.

    Raises:
      RuntimeError: a server refuses a request.
      ValueError: calls failed.
    """
    differences = [0.0]

    def groups() -> Iterator[tuple[str, list[Variant]]]:
        for size in sizes:
            data = requests(size, effort.distinct(size))
            sent = _encoded(running[0].target, model, variants, data)
            first, *others = (
                reference_answers(server.target, own[:_HELD_BACK])
                for server, own in zip(running, sent, strict=True)
            )
            differences.extend(max(map(outputs_difference, first, other)) for other in others)
            with ExitStack() as connected:
                yield (
                    f"{model}, N = {size}",
                    [
                        _variant(variant, server, own, size, effort, connected)
                        for variant, server, own in zip(variants, running, sent, strict=True)
                    ],
                )

    with servers(model, base_path, *(it.flags for it in variants)) as running:
        lines = measure_variants(groups(), effort.rounds, tell=tell)
    return lines, max(differences)


def _encoded(
    target: str, model: str, variants: Sequence[ServerVariant], data: Sequence[RequestData]
) -> list[list[Request]]:
    """What each variant sends."""
    with RankingClient(target, model) as client:
        encoded = {
            name: [encode(client, name, one) for one in data]
            for name in dict.fromkeys(variant.format for variant in variants)
        }
    return [encoded[variant.format] for variant in variants]


def _variant(
    variant: ServerVariant,
    server: ServerProcess,
    requests: Sequence[Request],
    size: int,
    effort: Effort,
    connected: ExitStack,
) -> Variant:
    loop = connected.enter_context(ClosedLoop(server.target, effort.clients))
    meter, warm_up, fresh = ProcessMeter(server.pid), warm_up_calls(size), requests[_HELD_BACK:]

    def turn(number: int) -> Recording:
        start, calls = warm_up + number * effort.calls, effort.calls
        if number < 0:
            start, calls = 0, warm_up
        part = fresh[:_REPEATED] if variant.cached else fresh[start : start + calls]
        return answered(loop.run(part, calls=calls, meter=meter))

    return Variant(variant.title, turn)
