"""Servers that are restarted, added and removed: no call fails."""

import asyncio
import itertools
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
from colcast.client import AsyncRankingClient, ModelSchema, RankingClient, ServerError
from colcast.server import ServerProcess
from grpc_health.v1 import health, health_pb2

from ..models import build
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
    """Sends the requests, then continues until each of two servers has been restarted twice.

    Half of the requests come from threads with the blocking client, half from asyncio tasks. A
    server is restarted as soon as the other one serves again; every second restart is a kill.
    """
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
    """Clients that send until enough requests are answered and `stop` is set."""

    def __init__(self, addresses: Sequence[str], requests: int) -> None:
        self._addresses = addresses
        self._requests = requests
        self._lock = threading.Lock()
        self.enough = threading.Event()
        self._ages = itertools.cycle(range(100))
        self.answered = 0
        self.failed: Counter[str] = Counter()

    def from_threads(self) -> None:
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
        """A user who differs from call to call, so that calls reach all servers."""
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


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("movies")
    build("movies", path / "1")
    return path


@pytest.mark.parametrize("flags", [(), ("--enable_grpc_healthcheck_service=false",)])
def test_restarting_two_servers_in_turn_fails_no_request(models: Path, flags: Any) -> None:
    outcome = rolling_restart(models, 400, flags)
    assert not outcome.failed
    assert outcome.answered >= 400
    assert outcome.restarts >= 4


def test_a_server_that_does_not_serve_gets_no_calls(serves: Any, schema: ModelSchema) -> None:
    up, down = (serves(schema, health=health.HealthServicer()) for _ in range(2))
    up.health.set("", health_pb2.HealthCheckResponse.SERVING)
    down.health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    addresses = [up.address, down.address]
    with RankingClient(addresses, "movies", timeout_seconds=120, affinity="off") as client:
        for _ in range(20):
            client.rank(USER, ITEMS)
        assert (up.count("Predict"), down.count("Predict")) == (20, 0)
        down.health.set("", health_pb2.HealthCheckResponse.SERVING)
        while not down.count("Predict"):
            client.rank(USER, ITEMS)
        up.health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
        before = None
        while before != up.count("Predict"):
            before = up.count("Predict")
            client.rank(USER, ITEMS)
            client.rank(USER, ITEMS)


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED])
def test_a_request_that_a_server_dropped_is_tried_on_the_next_one(
    serves: Any, schema: ModelSchema, code: grpc.StatusCode
) -> None:
    def loading(_: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(code, "model movies is being loaded")
        raise AssertionError

    up, starting = serves(schema), serves(schema, loading)
    addresses = [up.address, starting.address]
    with RankingClient(addresses, "movies", timeout_seconds=120, affinity="off") as client:
        for _ in range(10):
            assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert up.count("Predict") == 10


def test_an_address_without_a_server_gets_no_calls(serves: Any, schema: ModelSchema) -> None:
    """The kernel accepts connections to the address, but nobody answers them."""
    up = serves(schema)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        addresses = [up.address, f"127.0.0.1:{silent.getsockname()[1]}"]
        with RankingClient(addresses, "movies", timeout_seconds=120) as client:
            for age in range(20):
                client.rank({**USER, "age": age}, ITEMS)
    assert up.count("Predict") == 20


def test_without_any_answer_the_deadline_ends_it() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        addresses = [f"127.0.0.1:{silent.getsockname()[1]}" for silent in (one, two)]
        with (
            RankingClient(addresses, "movies", timeout_seconds=0.3) as client,
            pytest.raises(ServerError, match="no server could be reached") as failed,
        ):
            client.schema()
    assert failed.value.attempts == 0
