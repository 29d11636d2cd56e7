"""What another client waits for beside one that asks for too much: latencies idle, then beside it.

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
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import tensorflow as tf
from colcast.client import RankingClient
from colcast.loadtest.formats import NO_STORES, encode
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.recording import percentile_ms
from colcast.loadtest.variants import zoo_rows
from colcast.server import ServerProcess
from colcast.zoo.columnar import columnar
from colcast.zoo.registry import MODELS

from ..hostile import http2
from ..hostile.conftest import bytes_method
from ..hostile.test_http2 import Zeros, request_for_zeros

HEADER = "x-colcast-caller"
MIB = 1 << 20
STREAMS = "--grpc_channel_arguments=grpc.max_concurrent_streams=1000"
OWN_CONNECTION = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
]


def flood(target: str, files: Sequence[Path], connections: int, in_flight: int, ready: Any) -> None:
    """Keeps so many requests in flight on each connection, until the process is ended."""
    os.nice(10)
    requests = [file.read_bytes() for file in files]
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
def flooded(*arguments: Any) -> Iterator[None]:
    """While another process floods."""
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    attacker = context.Process(target=flood, args=(*arguments, ready), daemon=True)
    attacker.start()
    assert ready.wait(300)
    try:
        yield
    finally:
        attacker.terminate()
        attacker.join()


def latencies(target: str, requests: Sequence[bytes], seconds: float) -> list[float]:
    """Of one request after the other, in seconds."""
    taken = []
    with grpc.insecure_channel(target, OWN_CONNECTION) as channel:
        predict = bytes_method(channel, http2.PREDICT)
        grpc.channel_ready_future(channel).result(60)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            start = time.monotonic()
            request = requests[len(taken) % len(requests)]
            predict(request, timeout=60, metadata=((HEADER, "feed"),))
            taken.append(time.monotonic() - start)
    return taken


def tell(title: str, taken: Sequence[float]) -> None:
    """A line of the table."""
    figures = ", ".join(f"p{q} {percentile_ms(taken, q):.2f} ms" for q in (50, 99))
    print(
        f"{title}: {len(taken)} answers, {figures}, longest {max(taken) * 1000:.1f} ms", flush=True
    )


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


def requests_of_wide(server: ServerProcess, rows: int, count: int, folder: Path) -> list[Path]:
    """Files with requests of different users and items."""
    files = []
    with RankingClient(server.target, "wide") as client:
        for number, data in enumerate(zoo_rows("wide")(rows, count)):
            files.append(folder / f"{rows}-{number}")
            files[-1].write_bytes(encode(client, "late", data).payload)
    return files


def measure_flood(folder: Path) -> None:
    """One client floods, on one connection or on several."""
    wide = columnar(MODELS["wide"].saved_model(), late=True)
    for title, connections, flags in (
        ("one connection", 1, ()),
        ("nine connections", 9, ()),
        ("nine connections, callers named", 9, (f"--caller_header={HEADER}",)),
    ):
        with serving("wide", wide, STREAMS, *NO_STORES, *flags) as server:
            large = requests_of_wide(server, 1000, 5, folder)
            small = [file.read_bytes() for file in requests_of_wide(server, 20, 50, folder)]
            latencies(server.target, small, 2)
            tell(f"flood, {title}: idle", latencies(server.target, small, 5))
            with flooded(server.target, large, connections, 900 // connections):
                tell(f"flood, {title}: beside it", latencies(server.target, small, 20))


def measure_unread(folder: Path) -> None:
    """Answers that nobody reads."""
    model = Zeros()
    tf.saved_model.save(model, str(folder / "zeros" / "1"), signatures=model.zeros)
    limit = f"--max_unread_response_bytes={64 * MIB}"
    with serving("zeros", folder / "zeros", limit) as server, ExitStack() as stack:
        small = [request_for_zeros(10)]
        latencies(server.target, small, 1)
        tell("unread: idle", latencies(server.target, small, 3))
        meter = ProcessMeter(server.pid)
        before = meter.peak_memory_bytes()
        connection = stack.enter_context(http2.connect(server.target, window=0))
        message = http2.grpc_message(request_for_zeros(5 * MIB))
        attack = b"".join(
            http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.request_headers())
            + http2.frame(http2.DATA, http2.END_STREAM, stream, message)
            for stream in range(1, 100, 2)
        )
        connection.sendall(attack)
        tell("unread: beside it", latencies(server.target, small, 10))
        print(f"unread: peak memory +{(meter.peak_memory_bytes() - before) / MIB:.0f} MiB")


def measure_cold(folder: Path) -> None:
    """Rows that no store knows."""
    wide = columnar(MODELS["wide"].saved_model(), late=True)
    # A store that holds less than one request's rows: the next time they are new again.
    with serving("wide", wide, f"--item_state_bytes={32 * MIB}") as server:
        large = requests_of_wide(server, 60_000, 3, folder)
        small = [file.read_bytes() for file in requests_of_wide(server, 20, 50, folder)]
        latencies(server.target, small, 2)
        tell("cold: idle", latencies(server.target, small, 5))
        with flooded(server.target, large, 1, 1):
            tell("cold: beside it", latencies(server.target, small, 20))


def main() -> None:
    """Prints a line for each state."""
    measures = {"flood": measure_flood, "unread": measure_unread, "cold": measure_cold}
    for name in sys.argv[1:] or measures:
        with tempfile.TemporaryDirectory() as folder:
            measures[name](Path(folder))


if __name__ == "__main__":
    main()
