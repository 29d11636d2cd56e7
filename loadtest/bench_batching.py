"""Requests that share workers, on `wide`, late, nothing cached: joined, split, and as they were.

Servers differ in their flags only and are measured in turn. The generator shares the machine; the
closed loop is h2load's where that is installed.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from colcast.loadtest import h2load
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Request, predicted
from colcast.loadtest.formats import NO_STATES
from colcast.loadtest.open_loop import OpenLoop
from colcast.loadtest.recording import Recording
from colcast.loadtest.schedule import poisson
from colcast.loadtest.server_variants import servers
from colcast.loadtest.variants import P50, P99, PER_SECOND, Variant, answered, other, predicting
from colcast.loadtest.zoo_models import wide_requests
from colcast.server import ServerProcess

SMALL, LARGE = 20, 1000
_CLIENTS = 32
_SENT_BY_H2LOAD = 4  # different requests
_STREAMED = f"N = {LARGE} per second"
COLUMNS = (replace(PER_SECOND, compared=True), P50, P99, other(_STREAMED, ".1f"))
_WHOLE = "--max_piece_milliseconds=1000000"  # so long a slice that none is split
_GIVING_WAY = "--long_request_nice=19"
_APART = "--nojoin_waiting_requests"

Group = tuple[str, list[Variant]]


def groups(base_path: Path, seconds: float = 4) -> Iterator[Group]:
    """What joining and splitting come to; `seconds` is of one turn."""
    small, large = wide_requests(200, SMALL, seed=1), wide_requests(20, LARGE, seed=1)
    yield from _closed_loops(base_path, small, seconds)
    yield from _beside_stream(base_path, small, large, seconds)
    yield from _one_large(base_path, large)


def _closed_loops(base_path: Path, small: Sequence[Request], seconds: float) -> Iterator[Group]:
    with _servers(base_path, [_APART], []) as both, ExitStack() as stack:
        sent_by = "h2load" if h2load.is_installed() else "Python"
        variants = [
            Variant(title, _closed_loop(server.target, small, seconds, stack))
            for title, server in zip(("apart", "joined"), both, strict=True)
        ]
        yield f"{_CLIENTS} clients ({sent_by}), N = {SMALL}", variants


def _closed_loop(
    target: str, small: Sequence[Request], seconds: float, stack: ExitStack
) -> Callable[[int], Recording]:
    if h2load.is_installed():
        few = small[:_SENT_BY_H2LOAD]
        each, whole_seconds = _CLIENTS // len(few), max(1, round(seconds))
        return lambda _: answered(h2load.closed_loop(target, few, each, whole_seconds))
    loop = stack.enter_context(ClosedLoop(target, _CLIENTS))
    return lambda _: answered(loop.run(small, seconds=seconds))


def _beside_stream(
    base_path: Path, small: Sequence[Request], large: Sequence[Request], seconds: float
) -> Iterator[Group]:
    """Small requests at a tenth of capacity, beside a stream of large ones."""
    with _servers(base_path, [], [_GIVING_WAY], [_WHOLE]) as (split, giving_way, whole):
        with ClosedLoop(split.target, 4) as loop:
            loop.run(small, seconds=1)
            tenth = loop.run(small, seconds=2).per_second / 10
        paced = poisson(tenth, seconds, len(small), seed=1)

        def alone(_: int) -> Recording:
            return answered(OpenLoop(split.target).run(small, paced))

        def beside(server: ServerProcess) -> Callable[[int], Recording]:
            def turn(_: int) -> Recording:
                with ClosedLoop(server.target, 1) as stream, ThreadPoolExecutor(1) as thread:
                    streaming = thread.submit(stream.run, large, seconds=seconds)
                    recording = answered(OpenLoop(server.target).run(small, paced))
                    recording.others[_STREAMED] = answered(streaming.result()).per_second
                return recording

            return turn

        yield (
            f"N = {SMALL} at {tenth:.0f} per second",
            [
                Variant("alone", alone),
                Variant(f"beside N = {LARGE}, split", beside(split)),
                Variant(f"beside N = {LARGE}, giving way", beside(giving_way)),
                Variant(f"beside N = {LARGE}, nothing split", beside(whole)),
            ],
        )


def _one_large(base_path: Path, large: Sequence[Request]) -> Iterator[Group]:
    with _servers(base_path, ["--num_workers=1"], []) as both:
        yield (
            f"N = {LARGE} alone",
            [
                predicting(title, server, [request.payload for request in large])
                for title, server in zip(("on one worker", "on all"), both, strict=True)
            ],
        )


def scores_differ(base_path: Path, compared: int = 10_000) -> dict[str, dict[str, float]]:
    """The largest difference and the top-10 overlap of requests that run alone and joined."""
    requests = wide_requests(compared, SMALL, seed=1)
    order = np.random.default_rng(1).permutation(compared)
    with _servers(base_path, [_APART], []) as (apart, together):
        alone = _scores(apart, requests, np.arange(compared), clients=2)
        joined = _scores(together, requests, np.arange(compared), clients=_CLIENTS)
        otherwise = _scores(together, requests, order, clients=_CLIENTS // 2)
    return {
        "joined against alone": _compared(alone, joined),
        "joined against joined otherwise": _compared(joined, otherwise),
    }


def _compared(ones: Sequence[Any], others: Sequence[Any]) -> dict[str, float]:
    pairs = list(zip(ones, others, strict=True))
    return {
        "largest difference": float(max(np.abs(a - b).max() for a, b in pairs)),
        "top-10 overlap": float(np.mean([_overlap(a, b) for a, b in pairs])),
    }


def _scores(
    server: ServerProcess, requests: Sequence[Request], order: Any, clients: int
) -> list[Any]:
    """Of each request its scores, asked for in that order by so many clients at once."""
    in_order = [requests[number] for number in order]
    with ClosedLoop(server.target, clients) as loop:
        recording = answered(loop.run(in_order, calls=len(requests), keep_every=1))
    found: list[Any] = [None] * len(requests)
    for sample in recording.samples:
        (scores,) = predicted(sample.response).values()
        found[order[sample.request]] = np.asarray(scores).ravel()
    return found


def _overlap(a: Any, b: Any) -> float:
    return len(set(np.argsort(a)[-10:]) & set(np.argsort(b)[-10:])) / 10


def _servers(base_path: Path, *flags: Sequence[str]) -> AbstractContextManager[list[ServerProcess]]:
    """A server for each list of flags, without state caches."""
    return servers("wide", base_path, *([*NO_STATES, *own] for own in flags))
