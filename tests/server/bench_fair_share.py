"""What another client waits for beside one that asks for too much: latencies alone, then beside it.

    python -m tests.server.bench_fair_share [flood] [unread] [cold]

flood: 900 requests of N = 1,000 of `wide` in flight, on one connection; on nine, and on nine with
the caller named; the other client has N = 20. unread: 50 answers of 20 MiB that nobody reads,
against a limit of 64 MiB. cold: 60,000 rows at a time that no store knows, beside 20 rows. The
server and the attacker, a process of lower priority, have a core each.
"""

import multiprocessing
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import grpc
from colcast.loadtest.beside import BESIDE, GoingOn, alone_and_beside
from colcast.loadtest.formats import NO_STATES
from colcast.loadtest.variants import Variant, measure_variants
from colcast.loadtest.zoo_models import exported, zoo_payloads
from colcast.server import ServerProcess

from .. import models
from ..hostile import http2
from ..hostile.conftest import bytes_method
from ..hostile.test_http2 import request_for_zeros

HEADER = "x-colcast-caller"
MIB = 1 << 20
STREAMS = "--grpc_channel_arguments=grpc.max_concurrent_streams=1000"
OWN_CONNECTION = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
]


def flood(
    target: str, requests: Sequence[bytes], connections: int, in_flight: int, ready: Any
) -> None:
    """Keeps so many requests in flight on each connection, until the process is ended."""
    os.nice(10)
    codes: Counter[str] = Counter()
    slots = threading.Semaphore(connections * in_flight)
    channels = [grpc.insecure_channel(target, OWN_CONNECTION) for _ in range(connections)]
    calls = [bytes_method(channel, http2.PREDICT) for channel in channels]

    def note(call: grpc.Future) -> None:
        codes[call.code().name] += 1
        slots.release()

    sent = 0
    while True:
        slots.acquire()
        request = requests[sent % len(requests)]
        call = calls[sent % connections].future(request, metadata=((HEADER, "batch"),))
        call.add_done_callback(note)
        sent += 1
        if sent == connections * in_flight + len(requests):
            assert set(codes) == {"OK"}, codes  # of those that are answered; all are in flight
            ready.set()


@contextmanager
def flooded(*arguments: Any) -> Iterator[GoingOn]:
    """While another process floods."""
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    attacker = context.Process(target=flood, args=(*arguments, ready), daemon=True)
    attacker.start()
    assert ready.wait(300)
    try:
        yield GoingOn()
    finally:
        attacker.terminate()
        attacker.join()


def idle_and_beside(
    server: ServerProcess,
    title: str,
    requests: Sequence[bytes],
    seconds: tuple[float, float],
    attack: Callable[[], AbstractContextManager[GoingOn]],
) -> Iterator[tuple[str, list[Variant]]]:
    """Latencies of one request after the other: alone, then beside the attack."""
    with grpc.insecure_channel(server.target, OWN_CONNECTION) as channel:
        predict, sent = bytes_method(channel, http2.PREDICT), cycle(requests)

        def ask() -> None:
            predict(next(sent), timeout=60, metadata=((HEADER, "feed"),))

        yield title, alone_and_beside(ask, attack, server.pid, seconds)


@contextmanager
def serving(name: str, path: Path, *flags: str) -> Iterator[ServerProcess]:
    """A server on the first core; this process moves to the others."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:1])
    with ServerProcess(name, path, flags) as server:
        os.sched_setaffinity(0, cores[1:] or cores)
        try:
            yield server
        finally:
            os.sched_setaffinity(0, cores)


def of_wide(
    title: str, flags: Sequence[str], rows: int, connections: int, in_flight: int
) -> Iterator[tuple[str, list[Variant]]]:
    """Small requests of `wide`, and so many rows at a time beside them."""
    with serving("wide", exported("wide"), *flags) as server:
        large = zoo_payloads(server.target, "wide", "late", rows, 5 if rows < 10_000 else 3)
        small = zoo_payloads(server.target, "wide", "late", 20, 50)
        flooding = partial(flooded, server.target, large, connections, in_flight)
        yield from idle_and_beside(server, title, small, (5, 20), flooding)


def measure_flood(_: Path) -> Iterator[tuple[str, list[Variant]]]:
    """One client floods, on one connection or on several."""
    flags = [STREAMS, *NO_STATES]
    yield from of_wide("flood, one connection", flags, 1000, 1, 900)
    yield from of_wide("flood, nine connections", flags, 1000, 9, 100)
    flags.append(f"--caller_header={HEADER}")
    yield from of_wide("flood, nine, callers named", flags, 1000, 9, 100)


def measure_unread(folder: Path) -> Iterator[tuple[str, list[Variant]]]:
    """Answers that nobody reads."""
    models.build("zeros", folder / "zeros" / "1")
    limit = f"--max_unread_response_bytes={64 * MIB}"
    with serving("zeros", folder / "zeros", limit) as server:

        @contextmanager
        def unread() -> Iterator[GoingOn]:
            with http2.connect(server.target, window=0) as connection:
                message = http2.grpc_message(request_for_zeros(5 * MIB))
                connection.sendall(
                    b"".join(
                        http2.frame(
                            http2.HEADERS, http2.END_HEADERS, stream, http2.request_headers()
                        )
                        + http2.frame(http2.DATA, http2.END_STREAM, stream, message)
                        for stream in range(1, 100, 2)
                    )
                )
                yield GoingOn()

        yield from idle_and_beside(
            server, "unread answers", [request_for_zeros(10)], (3, 10), unread
        )


def measure_cold(_: Path) -> Iterator[tuple[str, list[Variant]]]:
    """Rows that no store knows: it holds less than one request's, the next time they are new."""
    yield from of_wide("cold rows", [f"--item_state_bytes={32 * MIB}"], 60_000, 1, 1)


def main() -> None:
    """Prints a line for each state."""
    measures = {"flood": measure_flood, "unread": measure_unread, "cold": measure_cold}
    for name in sys.argv[1:] or measures:
        with tempfile.TemporaryDirectory() as folder:
            measure_variants(measures[name](Path(folder)), 1, BESIDE)


if __name__ == "__main__":
    main()
