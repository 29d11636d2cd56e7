"""One client with 10,000 texts beside 20 clients with one text each.

python -m tests.zoo.text.bench_fairness -- --max_piece_milliseconds=20 --long_request_nice=19

The small clients' latency without the large one and beside it, in turn, and what the large one
gets.
Nothing is found in the stores: they are off.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import numpy as np
from colcast.client import TextClient
from colcast.client._deadline import Deadline
from colcast.client._settings import ChannelOptions
from colcast.client._text_batches import TextCall
from colcast.client._transport import Transport
from colcast.loadtest.recording import Recording
from colcast.loadtest.variants import (
    LATENCY,
    Variant,
    for_seconds,
    measure_variants,
    one_by_one,
    other,
)
from colcast.server import ServerProcess
from colcast.zoo.text import encoder

from .peer_environment import mixed_lengths

SMALL_CLIENTS = 20
TEXTS = 10_000
ROUNDS = 3
LARGE = "large one's texts per second"


def small_client(
    address: str, texts: list[str], pause: float, more: Callable[[int], bool]
) -> Recording:
    """Asks for one text after the other, with pauses, while there is `more` time."""
    transport = Transport(address, ChannelOptions())
    call = TextCall("encoder", "encode", None, None, ("embeddings",), None)
    random = np.random.default_rng(len(texts[0]))

    def paused(done: int) -> bool:
        time.sleep(random.exponential(pause) if done else random.uniform(0, pause))
        return more(done)

    def ask() -> None:
        message = call.of([texts[random.integers(len(texts))].encode()])
        transport.call(message, Deadline(60))

    recording = one_by_one(ask, paused)
    transport.close()
    return recording


def small_clients(address: str, texts: list[str], pause: float, seconds: float) -> Recording:
    """What 20 of them saw."""
    more, total = for_seconds(seconds), Recording()
    with ThreadPoolExecutor(SMALL_CLIENTS) as pool:
        for one in pool.map(
            lambda n: small_client(address, texts[n:], pause, more), range(SMALL_CLIENTS)
        ):
            total.extend(one, after=False)
    return total


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
def large_client_beside(address: str, options: dict[str, Any]) -> Iterator[Any]:
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

        def idle(number: int) -> Recording:
            seconds = args.seconds if number >= 0 else 3
            return small_clients(server.target, texts, args.pause / 1e3, seconds)

        def beside(number: int) -> Recording:
            if number < 0:
                return Recording()
            with large_client_beside(server.target, options) as encoded:
                time.sleep(2)
                before = encoded.value
                recording = idle(number)
                rate = (encoded.value - before) / recording.wall_seconds
                recording.others[LARGE] = rate
            return recording

        variants = [Variant("idle", idle), Variant(f"beside {TEXTS:,} texts", beside)]
        measure_variants([("small clients", variants)], ROUNDS, (*LATENCY, other(LARGE, ",.0f")))


if __name__ == "__main__":
    main()
