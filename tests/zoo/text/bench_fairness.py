"""One client with 10,000 texts beside 20 clients with one text each.

python -m tests.zoo.text.bench_fairness -- --max_piece_milliseconds=20 --long_request_nice=19

The small clients' latency without the large one and beside it, in turn, and what the large one
gets.
Nothing is found in the stores: they are off.
"""

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import numpy as np
from colcast.client import TextClient
from colcast.client._deadline import Deadline
from colcast.client._settings import ChannelOptions
from colcast.client._text_batches import TextCall
from colcast.client._transport import Transport
from colcast.loadtest.turns import in_turn
from colcast.server import ServerProcess
from colcast.zoo.text import encoder

from .peer_environment import mixed_lengths

SMALL_CLIENTS = 20
TEXTS = 10_000
ROUNDS = 3


def small_client(address: str, texts: list[str], pause: float, end: float, times: list) -> None:
    """Asks for one text after the other, with pauses, until `end`."""
    transport = Transport(address, ChannelOptions())
    call = TextCall("encoder", "encode", None, None, ("embeddings",), None)
    random = np.random.default_rng(len(texts[0]))
    time.sleep(random.uniform(0, pause))
    while (begin := time.perf_counter()) < end:
        message = call.of([texts[random.integers(len(texts))].encode()])
        transport.call(message, Deadline(60))
        times.append(time.perf_counter() - begin)
        time.sleep(random.exponential(pause))
    transport.close()


def small_clients(address: str, texts: list[str], pause: float, seconds: float) -> list[float]:
    """The latencies of 20 of them, in seconds."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    threads = [
        threading.Thread(target=small_client, args=(address, texts[n:], pause, end, times))
        for n in range(SMALL_CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def large_client(address: str, options: dict[str, Any], encoded: Any, started: Any) -> None:
    """Encodes 10,000 texts again and again, and counts those it has vectors of."""
    texts = mixed_lengths(TEXTS)
    with TextClient(address, "encoder", **options) as client:
        per_batch = []

        def progress(answered: int, batches: int) -> None:
            per_batch[:] = per_batch or [len(texts) / batches]
            encoded.value += per_batch[0]
            started.set()

        while True:
            client.encode(texts, progress=progress)


@contextmanager
def beside(address: str, options: dict[str, Any]) -> Iterator[Any]:
    """A large client at work in a process of its own; its count of texts."""
    context = get_context("spawn")
    encoded, started = context.Value("d", 0.0), context.Event()
    process = context.Process(target=large_client, args=(address, options, encoded, started))
    process.start()
    started.wait(120)
    try:
        yield encoded
    finally:
        process.terminate()
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--pause", type=float, default=500, help="mean, in milliseconds")
    parser.add_argument(
        "--batch-tokens", type=int, help="the large client's (default: TextClient's)"
    )
    parser.add_argument("--in-flight", type=int, help="the same")
    parser.add_argument("flags", nargs="*")
    args = parser.parse_args()
    chosen = {"batch_tokens": args.batch_tokens, "in_flight": args.in_flight}
    options = {name: value for name, value in chosen.items() if value is not None}
    texts = mixed_lengths(1000)
    flags = ["--item_state_bytes=0", *args.flags]
    with ServerProcess("encoder", encoder.ensure(), flags) as server:
        small_clients(server.target, texts, 0, 3)  # warms the server up

        def measure(with_large: bool, _: int) -> tuple[list[float], float]:
            if not with_large:
                return small_clients(server.target, texts, args.pause / 1e3, args.seconds), 0
            with beside(server.target, options) as encoded:
                time.sleep(2)
                before, begin = encoded.value, time.perf_counter()
                times = small_clients(server.target, texts, args.pause / 1e3, args.seconds)
                return times, (encoded.value - before) / (time.perf_counter() - begin)

        rounds = in_turn((False, True), measure, ROUNDS)
    p99 = []
    for name, lines in zip(("idle", "beside 10,000 texts"), rounds, strict=True):
        times = 1e3 * np.concatenate([line[0] for line in lines])
        p50, last = np.percentile(times, [50, 99])
        p99.append(last)
        large = np.mean([line[1] for line in lines])
        print(
            f"{name:20} {len(times):6} texts of small clients: p50 {p50:6.1f} ms, "
            f"p99 {last:6.1f} ms; the large one's {large:6.0f} texts/s"
        )
    print(f"p99 beside / idle: {p99[1] / p99[0]:.2f}")


if __name__ == "__main__":
    main()
