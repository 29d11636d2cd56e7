"""Ways to ask a server, compared by the CPU that it takes for them: a bench is its list of ways."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np
from colcast.loadtest.connection import Connection, Request
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.turns import in_turn
from colcast.server import ServerProcess


class Measured(Protocol):
    """A process of this machine; a server is one."""

    @property
    def pid(self) -> int:
        """Its number."""


@dataclass(frozen=True)
class Way:
    """A line of a table: `ask` sends so many requests to `server` and waits for the answers.

    `bytes` is what all of them have together, 0 if nothing is to be told of it.
    """

    title: str
    server: Measured
    ask: Callable[[], object]
    requests: int
    bytes: int = 0


def compare_ways(ways: Sequence[Way], rounds: int) -> Any:
    """Milliseconds of server CPU per request, [way, round]; a round before those warms up."""

    def spent(way: Way, _: int) -> float:
        meter = ProcessMeter(way.server.pid)
        before = meter.cpu_seconds()
        way.ask()
        return 1000 * (meter.cpu_seconds() - before) / way.requests

    return np.array(in_turn(ways, spent, rounds + 1))[:, 1:]


def print_ways(heading: str, ways: Sequence[Way], rounds: int) -> None:
    """Prints server CPU per request, its share of the first way's, both medians, and bytes."""
    print(heading)
    found = compare_ways(ways, rounds)
    for way, own in zip(ways, found, strict=True):
        size = f"{way.bytes / way.requests:12,.0f} bytes" if way.bytes else ""
        share = np.median(own / found[0])
        print(f"  {way.title:<20}{np.median(own):9.3f} ms{share:7.3f}{size}", flush=True)


def predicting(title: str, server: ServerProcess, payloads: Sequence[bytes], calls: int = 0) -> Way:
    """PredictRequests one after the other: each once or, in turn, so many `calls`."""
    sent = [payloads[number % len(payloads)] for number in range(calls or len(payloads))]

    def ask() -> None:
        with Connection(server.target) as connection:
            for payload in sent:
                answer = connection.call(Request(payload, 0))
                assert answer.code == "OK", answer.message

    return Way(title, server, ask, len(sent), sum(map(len, sent)))


@contextmanager
def build(executable: Path | str) -> Iterator[None]:
    """Servers that are made meanwhile are of that build."""
    with patch.dict(os.environ, {"COLCAST_MODEL_SERVER": str(executable)}):
        yield
