"""Servers that come and go: calls go to those that serve, and none fails."""

import socket
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.client import ModelSchema, RankingClient, ServerError
from grpc_health.v1 import health, health_pb2

from ..models import build
from .conftest import ITEMS, USER
from .rolling_restart import rolling_restart
from .test_transport import metadata, scores


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the model's versions."""
    path = tmp_path_factory.mktemp("movies")
    build("movies", path / "1")
    return path


@pytest.mark.parametrize("flags", [(), ("--enable_grpc_healthcheck_service=false",)])
def test_restarting_two_servers_in_turn_fails_no_request(models: Path, flags: Any) -> None:
    outcome = rolling_restart(models, 400, flags)
    assert not outcome.failed
    assert outcome.answered >= 400
    assert outcome.restarts >= 4


def answering(schema: ModelSchema) -> dict[str, Any]:
    """The handlers of a server that answers."""
    return {
        "GetModelMetadata": lambda *_: metadata(schema),
        "Predict": lambda request, _: scores(request),
    }


def test_a_server_that_does_not_serve_gets_no_calls(scripted: Any, schema: ModelSchema) -> None:
    up, down = (scripted(health=health.HealthServicer(), **answering(schema)) for _ in range(2))
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


def test_servers_without_the_health_service_get_calls(scripted: Any, schema: ModelSchema) -> None:
    servers = [scripted(**answering(schema)) for _ in range(2)]
    addresses = [one.address for one in servers]
    with RankingClient(addresses, "movies", timeout_seconds=120, affinity="off") as client:
        while not all(server.count("Predict") for server in servers):
            client.rank(USER, ITEMS)


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED])
def test_what_a_server_gave_up_is_tried_on_the_next_one(
    scripted: Any, schema: ModelSchema, code: grpc.StatusCode
) -> None:
    def loading(_: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(code, "model movies is being loaded")
        raise AssertionError

    handlers = answering(schema)
    up = scripted(**handlers)
    starting = scripted(**{**handlers, "Predict": loading})
    addresses = [up.address, starting.address]
    with RankingClient(addresses, "movies", timeout_seconds=120, affinity="off") as client:
        for _ in range(10):
            assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert up.count("Predict") == 10


def test_an_address_where_nobody_answers_gets_no_calls(scripted: Any, schema: ModelSchema) -> None:
    """It takes connections and says nothing: the kernel's own queue, which nobody empties."""
    up = scripted(**answering(schema))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        addresses = [up.address, f"127.0.0.1:{silent.getsockname()[1]}"]
        with RankingClient(addresses, "movies", timeout_seconds=120) as client:
            for age in range(20):
                client.rank({**USER, "age": age}, ITEMS)
    assert up.count("Predict") == 20


def test_where_nobody_answers_at_all_the_deadline_ends_it() -> None:
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
