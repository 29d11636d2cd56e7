"""Capacity by the number of replicas, of a model with a fixed service time that needs no processor.

python -m tests.deploy.bench_capacity
"""

import itertools
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from operator import itemgetter
from pathlib import Path

import numpy as np
from colcast.client import RankingClient
from colcast.loadtest.server_variants import servers
from colcast.loadtest.variants import Column, Variant, measure_variants

from .. import models
from .ways import BY_CLIENT, BY_ENVOY, target_of

SECONDS = 30
COLUMNS = (
    Column("per second", itemgetter("rate"), ".1f"),
    Column("per replica", itemgetter("each"), ".1f", compared=True),
)


def groups(folder: Path) -> Iterator[tuple[str, list[Variant]]]:
    """1, 2, 4 and 8 replicas with one worker each and a fixed service time."""
    models.build("slow", folder / "slow" / "1", milliseconds=200)
    flags = ("--num_workers=1", "--rest_api_port=-1", "--join_waiting_requests=false")
    for way in (BY_ENVOY, BY_CLIENT):
        with ExitStack() as stack:
            clients = {}
            for replicas in (1, 2, 4, 8):
                running = stack.enter_context(servers("slow", folder / "slow", *[flags] * replicas))
                address, _ = stack.enter_context(target_of(way, running))
                client = RankingClient(address, "slow", timeout_seconds=60)
                clients[replicas] = stack.enter_context(client)
            yield (
                way.title,
                [
                    Variant(f"replicas: {replicas}", partial(saturated, replicas, client))
                    for replicas, client in clients.items()
                ],
            )


def saturated(replicas: int, client: RankingClient, number: int) -> dict[str, float]:
    """Requests per second of eight users per replica who ask again at once."""
    request = client.encode(items={"x": np.float32([1, 2])})
    users, answered, stop = itertools.count(), itertools.count(), threading.Event()

    def ask() -> None:
        while not stop.is_set():
            client.send(request, affinity_key=next(users) * 7919 % 10_007)
            next(answered)

    with ThreadPoolExecutor(8 * replicas) as pool:
        running = [pool.submit(ask) for _ in range(8 * replicas)]
        time.sleep(3)
        first, at = next(answered), time.monotonic()
        time.sleep(SECONDS if number >= 0 else 0)
        rate = (next(answered) - first - 1) / (time.monotonic() - at)
        stop.set()
        for one in running:
            one.result()
    return {"rate": rate, "each": rate / replicas}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        measure_variants(groups(Path(directory)), 1, COLUMNS)
