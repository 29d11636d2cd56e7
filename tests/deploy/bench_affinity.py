"""Four replicas: what it is worth that a user meets the replica that knows the user.

    python -m tests.deploy.bench_affinity

Prints three tables: hit rates of users' states and server CPU per request by who divides the calls
and how; users that move when a replica dies; failed requests while one is killed and one drains.
"""

import argparse
import itertools
import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import ChannelOptions, RankingClient
from colcast.loadtest.metrics import page_of, publishing, state_counts
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.server_variants import servers
from colcast.loadtest.variants import Column, Variant, measure_variants
from colcast.server import ServerProcess
from colcast.zoo.catalog import Zipf

from ..models import build, stages_model
from ..server.metrics_page import Metrics
from ..waiting import wait_until
from .ways import BY_CLIENT, BY_ENVOY, WAYS, Way, target_of

REPLICAS, IN_FLIGHT = 4, 16
USERS, HISTORY, CANDIDATES, REQUESTS = 4000, 50, 20, 8000
STATE_MIB = 2  # of each replica
MOVIES_USER = {"age": 31, "city": "Łódź", "history": [1, 2, 3]}
MOVIES_ITEMS = {
    "movie": [7, 9],
    "year": [2001.0, 1984.0],
    "genres": [["War"], []],
    "vector": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
}

HITS = (
    Column("users found", itemgetter("found"), ".1%"),
    Column("server CPU ms", itemgetter("cpu")),
    Column("balancer CPU ms", itemgetter("balancer")),
    Column("hottest / mean", itemgetter("hottest")),
)
MOVES = (
    Column("met the replica that died", itemgetter("lost"), ".1%"),
    Column("others that moved", itemgetter("moved"), ".0f"),
)
FAILURES = (
    Column("requests", itemgetter("asked"), ",.0f"),
    Column("failed", itemgetter("failed"), ",.0f"),
    Column("errors", itemgetter("errors"), "", max),
)

Asked = tuple[bytes, int]  # a request, and whose it is


def in_parallel(ask: Callable[[Asked], Any], requests: Sequence[Asked]) -> None:
    """Sends requests in order, so many at a time."""
    waiting, lock = iter(requests), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                one = next(waiting, None)
            if one is None:
                return
            ask(one)

    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        for done in [pool.submit(work) for _ in range(IN_FLIGHT)]:
            done.result()


def drawn(target: str) -> list[Asked]:
    """Requests of Zipf users, each with a history of its own, for the same candidates."""
    random = np.random.default_rng(1)
    histories = random.integers(0, 10**6, (USERS, HISTORY))
    items = stages_model.inputs(random, 1, CANDIDATES)
    user = {name: items.pop(name)[0] for name in stages_model.DOMAINS["user"]}
    encoded: dict[int, bytes] = {}
    found = []
    with RankingClient(target, "ranker", timeout_seconds=60) as client:
        prepared = client.prepare(items)
        for (number,) in itertools.islice(Zipf(USERS, 1.0).draws(1, seed=3), REQUESTS):
            if number not in encoded:
                row = {**user, "history": histories[number]}
                encoded[number] = client.encode(row, prepared)
            found.append((encoded[number], int(number)))
    return found


def hit_rates(folder: Path) -> Iterator[tuple[str, list[Variant]]]:
    """Each way with four new replicas, which the first half of the requests warms up."""
    stages_model.save(folder / "ranker" / "1", layers=40)
    flags = [f"--user_state_bytes={STATE_MIB << 20}", "--num_workers=1", *publishing(folder)]
    requests: list[Asked] = []
    for way in WAYS:
        with ExitStack() as stack:
            running = servers("ranker", folder / "ranker", *[flags] * REPLICAS)
            replicas = stack.enter_context(running)
            requests = requests or drawn(replicas[0].target)
            address, envoy = stack.enter_context(target_of(way, replicas))
            channel = ChannelOptions(load_bound=way.load_bound)
            client = stack.enter_context(
                RankingClient(address, "ranker", timeout_seconds=60, channel=channel)
            )
            read = partial(reading, replicas, envoy)
            ask = partial(asked, client, way.keys)
            variant = Variant(way.title, partial(half_sent, ask, read, requests))
            yield f"{REPLICAS} replicas, {USERS:,} users", [variant]


def asked(client: RankingClient, keys: bool, one: Asked) -> None:
    """Sends a request, with or without saying whose it is."""
    client.send(one[0], affinity_key=one[1] if keys else None)


def half_sent(
    ask: Callable[[Asked], None],
    read: Callable[[], dict[str, Any]],
    requests: Sequence[Asked],
    number: int,
) -> dict[str, float]:
    """The figures of a table for the first half of the requests, or for the second."""
    before, half = read(), len(requests) // 2
    in_parallel(ask, requests[half:] if number >= 0 else requests[:half])
    counted = {name: np.subtract(value, before[name]) for name, value in read().items()}
    each = counted["answered"]
    return {
        "found": counted["states"][0] / counted["states"].sum(),
        "cpu": 1000 * counted["cpu"] / half,
        "balancer": 1000 * counted["balancer"] / half,
        "hottest": each.max() / each.mean(),
    }


def reading(servers: Sequence[ServerProcess], envoy: int) -> dict[str, Any]:
    """What servers and Envoy have counted."""
    pages = [state_counts(page_of(server.rest_target)) for server in servers]
    return {
        "states": [
            sum(page["user", f"states_{what}_total"] for page in pages)
            for what in ("found", "computed", "not_looked_for")
        ],
        "cpu": sum(ProcessMeter(server.pid).cpu_seconds() for server in servers),
        "balancer": ProcessMeter(envoy).cpu_seconds() if envoy else 0.0,
        "answered": [answered(server) for server in servers],
    }


def answered(server: ServerProcess) -> float:
    """How many Predicts a server has answered."""
    name = ":tensorflow:serving:request_count"
    return sum(s.value for s in Metrics(server).samples if s.name.startswith(name))


@contextmanager
def versions(
    folder: Path, way: Way, timeout_seconds: float
) -> Iterator[tuple[dict[int, ServerProcess], RankingClient]]:
    """Four replicas, each with a version of its own, by which its answers are known."""
    servers = {}
    try:
        for version in range(1, REPLICAS + 1):
            if not (folder / str(version)).exists():
                build("movies", folder / str(version) / str(version))
            servers[version] = started(folder, version)
        with (
            target_of(way, [*servers.values()]) as (address, _),
            RankingClient(address, "movies", timeout_seconds=timeout_seconds) as client,
        ):
            yield servers, client
    finally:
        for server in servers.values():
            server.kill()


def started(folder: Path, version: int, *flags: str) -> ServerProcess:
    """One of them."""
    common = ("--rest_api_port=-1", "--drain_seconds=4", "--num_workers=1", *flags)
    return ServerProcess("movies", folder / str(version), flags=common).__enter__()


def who_moves(folder: Path, way: Way, number: int) -> dict[str, float]:
    """1,000 users before and after one of four replicas dies."""
    if number < 0:
        return {}
    with versions(folder, way, timeout_seconds=60) as (servers, client):
        before = met(client, lambda found: len(set(found)) == REPLICAS)
        servers[1].kill()
        after = met(client, lambda found: 1 not in found)
    lost = before.count(1)
    moved = sum(a != b for a, b in zip(before, after, strict=True)) - lost
    return {"lost": lost / len(before), "moved": moved}


def met(client: RankingClient, settled: Callable[[list[Any]], bool]) -> list[Any]:
    """Whom each of 1,000 users meets, once they are as is said."""
    request = client.encode(MOVIES_USER, MOVIES_ITEMS)
    while True:
        found = [client.send(request, affinity_key=key).model_version for key in range(1000)]
        if settled(found):
            return found


def failures(folder: Path, requests: int, way: Way, number: int) -> dict[str, Any]:
    """Requests that fail while one replica is killed, started again, and another drains."""
    if number < 0:
        return {}
    with versions(folder, way, timeout_seconds=10) as (servers, client):
        load = Load(client)
        try:
            disturb(servers, folder, load, requests)
        finally:
            load.stop()
    errors = "; ".join(f"{times} {error}" for error, times in load.failed.most_common(3))
    return {"asked": load.asked, "failed": load.failed.total(), "errors": errors}


class Load:
    """Users that ask without a pause.

    Attributes:
        asked: how many requests.
        failed: the words of each error -> how often it came.
    """

    def __init__(self, client: RankingClient) -> None:
        self.asked = 0
        self.failed: Counter[str] = Counter()
        self._client = client
        self._request = client.encode(MOVIES_USER, MOVIES_ITEMS)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(IN_FLIGHT)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends it."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                self.asked += 1
                key = self.asked % 1009
            try:
                self._client.send(self._request, affinity_key=key)
            except Exception as error:
                with self._lock:
                    self.failed[str(error)] += 1


def disturb(servers: dict[int, ServerProcess], folder: Path, load: Load, requests: int) -> None:
    """Kills one replica, starts it again, drains another, within so many requests at least."""
    wait_until(lambda: load.asked > requests // 4)
    servers[1].kill()
    wait_until(lambda: load.asked > requests // 2)
    ports = [at.rpartition(":")[2] for at in (servers[1].target, servers[1].rest_target)]
    servers[1] = started(folder, 1, f"--port={ports[0]}", f"--rest_api_port={ports[1]}")
    assert servers[2].stop() == 0
    wait_until(lambda: load.asked > requests)


def main() -> None:
    """Prints the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = ("hits", "moves", "failures")
    parser.add_argument("tables", nargs="*", choices=names, default=names)
    parser.add_argument("--requests", type=int, default=10_000, help="of the table of failures")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)

        def of_ways(title: str, turn: Callable[..., Any]) -> list[tuple[str, list[Variant]]]:
            ways = (BY_ENVOY, BY_CLIENT)
            return [(title, [Variant(way.title, partial(turn, way)) for way in ways])]

        tables: dict[str, tuple[Any, Sequence[Column]]] = {
            "hits": (hit_rates(folder), HITS),
            "moves": (of_ways("1,000 users", partial(who_moves, folder)), MOVES),
            "failures": (
                of_ways("one killed", partial(failures, folder, options.requests)),
                FAILURES,
            ),
        }
        for name in options.tables:
            groups, columns = tables[name]
            measure_variants(groups, 1, columns)


if __name__ == "__main__":
    main()
