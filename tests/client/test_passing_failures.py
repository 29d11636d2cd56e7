"""Servers that are restarted, added and removed: no call fails."""

import asyncio
import itertools
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.client import AsyncRankingClient, RankingClient, ServerError
from colcast.server import ServerProcess
from grpc_health.v1 import health, health_pb2

from .conftest import ITEMS, USER


@pytest.mark.parametrize("flags", [(), ("--enable_grpc_healthcheck_service=false",)])
def test_restarting_two_servers_in_turn_fails_no_request(models: Path, flags: Any):
    """Threads with the blocking client and asyncio tasks send until each was restarted twice.

    A server is restarted once the other one serves again; every second time it is killed.
    """
    servers = [_started(models, *flags), _started(models, *flags)]
    addresses = [server.target for server in servers]
    ages, enough, outcomes = itertools.count(), threading.Event(), list[str]()

    def user() -> dict[str, Any]:
        """A user who differs from call to call, so that calls reach all servers."""
        return {**USER, "age": next(ages) % 100}

    def goes_on() -> bool:
        return len(outcomes) < 400 or not enough.is_set()

    def note(error: Exception | None = None) -> None:
        outcomes.append(str(error or "answered").partition("\n")[0])

    def from_threads(_: int) -> None:
        while goes_on():
            try:
                client.rank(user(), ITEMS)
            except Exception as error:
                note(error)
            else:
                note()

    async def from_tasks() -> None:
        async with AsyncRankingClient(addresses, "movies", timeout_seconds=10) as awaited:

            async def ask() -> None:
                while goes_on():
                    try:
                        await awaited.rank(user(), ITEMS)
                    except Exception as error:
                        note(error)
                    else:
                        note()

            await asyncio.gather(*[ask() for _ in range(4)])

    with (
        RankingClient(addresses, "movies", timeout_seconds=10) as client,
        ThreadPoolExecutor(3) as pool,
    ):
        running = [pool.submit(from_threads, n) for n in range(2)]
        running.append(pool.submit(lambda: asyncio.run(from_tasks())))
        try:
            for restart in range(4):
                (servers[restart % 2].kill if restart > 1 else servers[restart % 2].stop)()
                port = addresses[restart % 2].rpartition(":")[2]
                servers[restart % 2] = _started(models, *flags, f"--port={port}")
        finally:
            enough.set()
        for one in running:
            one.result()
    for server in servers:
        server.kill()
    assert set(outcomes) == {"answered"}


def _started(models: Path, *flags: str) -> ServerProcess:
    return ServerProcess("movies", models, flags=flags).__enter__()


def test_a_server_that_does_not_serve_gets_no_calls(serves: Any):
    up, down = (serves(health=health.HealthServicer()) for _ in range(2))
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
    serves: Any, code: grpc.StatusCode
):
    def loading(_: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(code, "model movies is being loaded")
        raise AssertionError

    up, starting = serves(), serves(predict=loading)
    addresses = [up.address, starting.address]
    with RankingClient(addresses, "movies", timeout_seconds=120, affinity="off") as client:
        for _ in range(10):
            assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert up.count("Predict") == 10


def test_an_address_without_a_server_gets_no_calls(serves: Any):
    """The kernel accepts connections to the address, but nobody answers them."""
    up = serves()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        addresses = [up.address, f"127.0.0.1:{silent.getsockname()[1]}"]
        with RankingClient(addresses, "movies", timeout_seconds=120) as client:
            for age in range(20):
                client.rank({**USER, "age": age}, ITEMS)
    assert up.count("Predict") == 20


def test_without_any_answer_the_deadline_ends_it():
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
