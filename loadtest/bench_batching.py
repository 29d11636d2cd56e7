"""Requests that share workers, on `wide`, late, nothing known: joined, split, and as they were.

Servers differ in their flags only and are measured in turn. The generator shares the machine; the
closed loop is h2load's where that is installed.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import encode_predict_request
from colcast.loadtest import h2load
from colcast.loadtest.bench_states import MODEL
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Connection, Request, predicted
from colcast.loadtest.formats import NO_STORES
from colcast.loadtest.open_loop import OpenLoop
from colcast.loadtest.progress import progress_bar
from colcast.loadtest.recording import Recording
from colcast.loadtest.schedule import Schedule, poisson
from colcast.server import ServerProcess
from rich.console import Console

SMALL, LARGE = 20, 1000
_CLIENTS = 32
_SENT_BY_H2LOAD = 4  # different requests
_SIGNATURE = "columnar_late"
_DISTINCT = 200
_WHOLE = "--max_piece_milliseconds=1000000"  # so long a slice that none is split
_GIVING_WAY = "--long_request_nice=19"
_APART = "--nojoin_waiting_requests"


@dataclass(frozen=True)
class Batching:
    """What joining and splitting requests come to.

    Attributes:
      requests_per_second: of 32 closed loops with 20 candidates: apart, joined.
      p99_ms: the same clients' latency: apart, joined.
      beside_stream_p99_ms: of 20 candidates at a tenth of capacity: without a stream of requests of
        1,000, beside it, beside it where long requests give way to short ones, and beside it where
        they are not split.
      streamed_per_second: requests of 1,000 answered meanwhile, for the last three.
      one_large_ms: the median of a request of 1,000 alone: on one worker, on all.
      compared: requests that were asked for alone and in two make-ups of joined runs.
      difference: the largest difference of a score: joined against alone, joined against joined
        otherwise.
      top_10_overlap: the mean share of the ten best that both have, for the same two.
    """

    requests_per_second: tuple[float, float]
    p99_ms: tuple[float, float]
    beside_stream_p99_ms: tuple[float, float, float, float]
    streamed_per_second: tuple[float, float, float]
    one_large_ms: tuple[float, float]
    compared: int
    difference: tuple[float, float]
    top_10_overlap: tuple[float, float]

    def lines(self) -> Iterator[str]:
        """A line per figure, each with its ratio."""
        apart, joined = self.requests_per_second
        generator = "h2load" if h2load.is_installed() else "Python"
        yield (
            f"{_CLIENTS} clients ({generator}), N = {SMALL}: {apart:.0f} requests/s apart, "
            f"{joined:.0f} joined ({joined / apart:.2f} times); "
            f"p99 {self.p99_ms[0]:.1f} ms, {self.p99_ms[1]:.1f} ms"
        )
        without, *beside = self.beside_stream_p99_ms
        ways = ("split", "giving way", "with nothing split")
        found = "; ".join(
            f"{way} {p99:.2f} ms ({p99 / without:.2f} times; {streamed:.0f} of N = {LARGE}/s)"
            for way, p99, streamed in zip(ways, beside, self.streamed_per_second, strict=True)
        )
        yield (
            f"N = {SMALL} at a tenth of capacity: p99 {without:.2f} ms; beside a stream of "
            f"N = {LARGE}, {found}"
        )
        one, all_workers = self.one_large_ms
        yield (
            f"N = {LARGE} alone: {one:.2f} ms on one worker, {all_workers:.2f} ms on all "
            f"({all_workers / one:.2f})"
        )
        yield (
            f"{self.compared} requests: joined against alone differ by at most "
            f"{self.difference[0]:.1g}, joined against joined otherwise by {self.difference[1]:.1g}"
            f"; top-10 overlap {self.top_10_overlap[0]:.5f} and {self.top_10_overlap[1]:.5f}"
        )


def batching(
    base_path: Path,
    console: Console,
    *,
    seconds: float = 4,
    rounds: int = 5,
    compared: int = 10_000,
) -> Batching:
    """Measures and prints everything; `seconds` is of one window, of which each has `rounds`."""
    small, large = _requests(SMALL, _DISTINCT), _requests(LARGE, 20)
    steps = 9 * rounds + 3
    with progress_bar(console, "servers in turn", steps) as advance:
        apart, joined = _closed_loops(base_path, small, seconds, rounds, advance)
        stream, streamed = _beside_stream(base_path, small, large, seconds, rounds, advance)
        one_large = _one_large(base_path, large, rounds, advance)
        difference, overlap = _compare(base_path, compared, advance)
    found = Batching(
        requests_per_second=(apart[0], joined[0]),
        p99_ms=(apart[1], joined[1]),
        beside_stream_p99_ms=stream,
        streamed_per_second=streamed,
        one_large_ms=one_large,
        compared=compared,
        difference=difference,
        top_10_overlap=overlap,
    )
    for line in found.lines():
        console.print(line, highlight=False)
    return found


def _closed_loops(
    base_path: Path, small: Sequence[Request], seconds: float, rounds: int, advance: Any
) -> list[tuple[float, float]]:
    """Requests per second and p99 in ms: joining off and on.

    No call is kept: Python would look through hundreds of thousands of them while others are timed.
    """
    found = [Recording(), Recording()]
    with _servers(base_path, [_APART], []) as servers, ExitStack() as stack:
        loops = [_closed_loop(one.target, small, stack) for one in servers]
        for run in loops:
            run(1)
        for _ in range(rounds):
            for run, total in zip(loops, found, strict=True):
                total.extend(_right(run(seconds)))
                advance()
    return [(total.per_second, _p99(total)) for total in found]


def _closed_loop(
    target: str, small: Sequence[Request], stack: ExitStack
) -> Callable[[float], Recording]:
    """What runs it for so many seconds."""
    if h2load.is_installed():
        few = small[:_SENT_BY_H2LOAD]
        return lambda seconds: h2load.closed_loop(
            target, few, _CLIENTS // len(few), max(1, round(seconds))
        )
    loop = stack.enter_context(ClosedLoop(target, _CLIENTS))
    return lambda seconds: loop.run(small, seconds=seconds)


def _beside_stream(
    base_path: Path,
    small: Sequence[Request],
    large: Sequence[Request],
    seconds: float,
    rounds: int,
    advance: Any,
) -> tuple[tuple[float, float, float, float], tuple[float, float, float]]:
    """p99 of small requests without a stream of large ones and beside it; that stream's rate."""
    totals = [Recording() for _ in range(4)]
    streams = [Recording() for _ in range(4)]
    with _servers(base_path, [], [_GIVING_WAY], [_WHOLE]) as (split, giving_way, whole):
        with ClosedLoop(split.target, 4) as loop:
            loop.run(small, seconds=1)
            per_second = loop.run(small, seconds=2).per_second / 10
        ways = ((split, False), (split, True), (giving_way, True), (whole, True))
        for server, _ in ways[1:]:
            with ClosedLoop(server.target, 1) as warm:
                warm.run(large, calls=20)
                warm.run(small, calls=200)
        for _ in range(rounds):
            for (server, with_stream), total, stream in zip(ways, totals, streams, strict=True):
                paced = poisson(per_second, seconds, len(small), seed=1)
                if with_stream:
                    small_ones, large_ones = _beside(server.target, small, large, paced, seconds)
                    stream.extend(_right(large_ones))
                else:
                    small_ones = OpenLoop(server.target).run(small, paced)
                total.extend(_right(small_ones))
                advance()
    without, *beside = [_p99(total) for total in totals]
    rates = [stream.per_second for stream in streams[1:]]
    return (without, beside[0], beside[1], beside[2]), (rates[0], rates[1], rates[2])


def _beside(
    target: str,
    small: Sequence[Request],
    large: Sequence[Request],
    paced: Schedule,
    seconds: float,
) -> tuple[Recording, Recording]:
    """Small requests on a schedule, from due to answered, and a stream of large ones."""
    with ClosedLoop(target, 1) as stream, ThreadPoolExecutor(1) as thread:
        streaming = thread.submit(stream.run, large, seconds=seconds)
        recording = OpenLoop(target).run(small, paced)
        return recording, streaming.result()


def _one_large(
    base_path: Path, large: Sequence[Request], rounds: int, advance: Any
) -> tuple[float, float]:
    """The median time of one large request on one worker, and on all."""
    times: list[list[float]] = [[], []]
    with _servers(base_path, ["--num_workers=1"], []) as servers, ExitStack() as stack:
        clients = [stack.enter_context(Connection(one.target)) for one in servers]
        for client in clients:
            for request in large:
                client.call(request)
        for _ in range(rounds):
            for client, found in zip(clients, times, strict=True):
                found += [client.call(request).seconds for request in large]
                advance()
    return 1000 * float(np.median(times[0])), 1000 * float(np.median(times[1]))


def _compare(
    base_path: Path, compared: int, advance: Any
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The largest difference and the top-10 overlap: joined/alone, joined/joined otherwise."""
    requests = [*_requests(SMALL, compared)]
    order = np.random.default_rng(1).permutation(compared)
    with _servers(base_path, [_APART], []) as (apart, together):
        alone = _scores(apart, requests, np.arange(compared), clients=2)
        advance()
        joined = _scores(together, requests, np.arange(compared), clients=_CLIENTS)
        advance()
        otherwise = _scores(together, requests, order, clients=_CLIENTS // 2)
        advance()
    pairs = ((alone, joined), (joined, otherwise))
    differences = [float(max(np.abs(a - b).max() for a, b in zip(*p, strict=True))) for p in pairs]
    overlaps = [float(np.mean([_overlap(a, b) for a, b in zip(*p, strict=True)])) for p in pairs]
    return (differences[0], differences[1]), (overlaps[0], overlaps[1])


def _scores(
    server: ServerProcess, requests: Sequence[Request], order: Any, clients: int
) -> list[Any]:
    """Of each request its scores, asked for in that order by so many clients at once."""
    with ClosedLoop(server.target, clients) as loop:
        recording = _right(
            loop.run([requests[n] for n in order], calls=len(requests), keep_every=1)
        )
    found: list[Any] = [None] * len(requests)
    for sample in recording.samples:
        (scores,) = predicted(sample.response).values()
        found[order[sample.request]] = np.asarray(scores).ravel()
    return found


def _overlap(a: Any, b: Any) -> float:
    return len(set(np.argsort(a)[-10:]) & set(np.argsort(b)[-10:])) / 10


@contextmanager
def _servers(base_path: Path, *flags: Sequence[str]) -> Iterator[list[ServerProcess]]:
    """A server for each list of flags, without state stores."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(ServerProcess(MODEL, base_path, flags=[*NO_STORES, *more]))
            for more in flags
        ]


def _requests(rows: int, count: int) -> list[Request]:
    """Requests of users and items of their own."""
    from colcast.zoo.catalog import Catalog
    from colcast.zoo.wide import WIDE

    users = Catalog(WIDE, "user", count, seed=1)
    items = Catalog(WIDE, "item", 20_000, seed=2)
    draw = np.random.default_rng(3)
    made = []
    for user in range(count):
        chosen = draw.integers(0, 20_000, rows)
        columns = users.columns(np.array([user])) | items.columns(chosen)
        made.append(Request(encode_predict_request(MODEL, _SIGNATURE, columns), rows))
    return made


def _right(recording: Recording) -> Recording:
    if recording.errors:
        raise ValueError(f"{recording.errors} calls failed: {recording.first_error}")
    return recording


def _p99(recording: Recording) -> float:
    return 1000 * float(np.quantile(recording.latencies, 0.99))
