"""Capacity by the number of replicas, of a model with a fixed service time that needs no processor.

python -m tests.deploy.bench_capacity
"""

import itertools
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from colcast.client import RankingClient
from colcast.server import ServerProcess

from .slow_model import save
from .ways import BY_CLIENT, BY_ENVOY, target_of


def capacity(folder: Path) -> None:
    """Requests per second of 1, 2, 4 and 8 replicas with one worker and a fixed service time."""
    save(folder / "slow" / "1", milliseconds=200)
    print("\n| | replicas | requests per second | of one, per replica |\n|---|--:|--:|--:|")
    flags = ("--num_workers=1", "--rest_api_port=-1", "--join_waiting_requests=false")
    for way in (BY_ENVOY, BY_CLIENT):
        one = 0.0
        for replicas in (1, 2, 4, 8):
            with ExitStack() as stack:
                servers = [
                    stack.enter_context(ServerProcess("slow", folder / "slow", flags))
                    for _ in range(replicas)
                ]
                address, _ = stack.enter_context(target_of(way, servers))
                client = stack.enter_context(RankingClient(address, "slow", timeout_seconds=60))
                rate = saturated(client, in_flight=8 * replicas)
            one = one or rate
            print(
                f"| {way.title} | {replicas} | {rate:.1f} | {rate / replicas / one:.3f} |",
                flush=True,
            )


def saturated(client: RankingClient, in_flight: int, seconds: float = 30) -> float:
    """Requests per second of so many users who ask again at once."""
    request = client.encode(items={"x": np.float32([1, 2])})
    users = itertools.count()
    answered = itertools.count()
    until = time.monotonic() + 3 + seconds

    def ask() -> None:
        while time.monotonic() < until:
            client.send(request, affinity_key=next(users) * 7919 % 10_007)
            next(answered)

    with ThreadPoolExecutor(in_flight) as pool:
        running = [pool.submit(ask) for _ in range(in_flight)]
        time.sleep(3)
        first, at = next(answered), time.monotonic()
        time.sleep(seconds - 1)
        rate = (next(answered) - first - 1) / (time.monotonic() - at)
        for one in running:
            one.result()
    return rate


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        capacity(Path(directory))
