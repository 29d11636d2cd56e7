"""Two servers restarted in turn while clients send requests without a pause.

Half of the requests come from threads with the blocking client, half from asyncio tasks. A server
is restarted as soon as the other one serves again; every second restart is a kill.
"""

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from colcast.client import AsyncRankingClient, RankingClient
from colcast.server import ServerProcess

from .conftest import ITEMS, USER

THREADS, TASKS = 2, 4


class Outcome(NamedTuple):
    """The outcome of the requests.

    Attributes:
        answered: number of answered requests.
        failed: the first line of each error -> its number of occurrences.
        restarts: number of server restarts meanwhile.
    """

    answered: int
    failed: Counter[str]
    restarts: int


def rolling_restart(models: Path, requests: int, flags: Sequence[str] = ()) -> Outcome:
    """Sends the requests, then continues until each server has been restarted twice."""
    servers = [_started(models, flags), _started(models, flags)]
    addresses = [server.target for server in servers]
    ports = [address.rpartition(":")[2] for address in addresses]
    load = _Load(addresses, requests)
    restarts = 0
    try:
        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(load.from_threads), pool.submit(load.from_tasks)]
            for turn in itertools.count():
                _end(servers[turn % 2], kill=turn % 4 > 1)
                servers[turn % 2] = _started(models, (*flags, f"--port={ports[turn % 2]}"))
                restarts += 1
                if restarts >= 4:
                    load.enough.set()
                if all(one.done() for one in running):
                    break
            for one in running:
                one.result()
    finally:
        load.enough.set()
        for server in servers:
            server.kill()
    return Outcome(load.answered, load.failed, restarts)


class _Load:
    """Clients that send until enough requests are answered and they are told to stop."""

    def __init__(self, addresses: Sequence[str], requests: int) -> None:
        self._addresses = addresses
        self._requests = requests
        self._lock = threading.Lock()
        self.enough = threading.Event()
        self._ages = itertools.cycle(range(100))
        self.answered = 0
        self.failed: Counter[str] = Counter()

    def from_threads(self) -> None:
        """Sends requests with the blocking client."""
        with RankingClient(self._addresses, "movies", timeout_seconds=10) as client:

            def ask() -> None:
                while self._goes_on():
                    self._count(lambda: client.rank(self._user(), ITEMS))

            threads = [threading.Thread(target=ask) for _ in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def from_tasks(self) -> None:
        """Sends requests with the asyncio client."""
        asyncio.run(self._tasks())

    async def _tasks(self) -> None:
        async with AsyncRankingClient(self._addresses, "movies", timeout_seconds=10) as client:

            async def ask() -> None:
                while self._goes_on():
                    try:
                        await client.rank(self._user(), ITEMS)
                    except Exception as error:
                        self._count_failure(error)
                    else:
                        self._count(lambda: None)

            await asyncio.gather(*[ask() for _ in range(TASKS)])

    def _goes_on(self) -> bool:
        return self.answered + self.failed.total() < self._requests or not self.enough.is_set()

    def _user(self) -> dict[str, Any]:
        """One of many users, so that every server is the home of some of them."""
        return {**USER, "age": next(self._ages)}

    def _count(self, ask: Callable[[], object]) -> None:
        try:
            ask()
        except Exception as error:
            self._count_failure(error)
        else:
            with self._lock:
                self.answered += 1

    def _count_failure(self, error: Exception) -> None:
        with self._lock:
            self.failed[str(error).partition("\n")[0]] += 1


def _started(models: Path, flags: Sequence[str]) -> ServerProcess:
    return ServerProcess("movies", models, flags=flags).__enter__()


def _end(server: ServerProcess, *, kill: bool) -> None:
    if kill:
        server.kill()
    else:
        server.stop()
