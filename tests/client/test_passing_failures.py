"""Temporary refusals, and servers that are added and removed: no call fails."""

import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.client import ModelSchema, RankingClient, ServerError, _asking
from grpc_health.v1 import health, health_pb2
from tensorflow_serving.apis import predict_pb2

from ..models import build
from .conftest import ITEMS, USER
from .rolling_restart import rolling_restart
from .test_late_refused import BY_GRAPH, signatures
from .test_transport import metadata, scores, without_late

PASSING = [
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
]
NOT_EXPANDED = "ConcatOp : Dimensions of inputs should match"

Abort = tuple[grpc.StatusCode, str] | None


def kind(request: bytes) -> str:
    """How a request is written: "late", "once" (its columns have 1 or N rows) or "full"."""
    message = predict_pb2.PredictRequest.FromString(request)
    if message.model_spec.signature_name == "columnar_late":
        return "late"
    sizes = {tensor.tensor_shape.dim[0].size for tensor in message.inputs.values()}
    return "once" if len(sizes) > 1 else "full"


def answers(**aborts: list[Abort]) -> Callable[..., bytes]:
    """Predict that ends the n-th request of a kind as its list says; the last entry repeats."""

    def predict(request: bytes, context: grpc.ServicerContext) -> bytes:
        script = aborts.get(kind(request), [None])
        found = script.pop(0) if len(script) > 1 else script[0]
        if found:
            context.abort(*found)
        return scores(request)

    return predict


def kinds(server: Any) -> list[str]:
    """The kinds of the received requests, in order."""
    return [kind(body) for name, body, _ in server.requests if name == "Predict"]


REFUSES_LATE: list[Abort] = [(grpc.StatusCode.INVALID_ARGUMENT, BY_GRAPH)]
EXPANDS_NOTHING: list[Abort] = [(grpc.StatusCode.INVALID_ARGUMENT, NOT_EXPANDED)]


@pytest.mark.parametrize("code", PASSING)
def test_what_fails_in_place_of_late_is_reported_and_late_is_known_to_be_refused(
    scripted: Any, schema: ModelSchema, code: grpc.StatusCode
) -> None:
    predict = answers(late=REFUSES_LATE, once=[(code, "not now"), None])
    server = scripted(GetModelMetadata=lambda *_: metadata(schema), Predict=predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        with pytest.raises(ServerError) as failed:
            client.rank(USER, ITEMS)
        assert (failed.value.code, failed.value.details) == (code.name, "not now")
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert kinds(server) == ["late", "once", "once", "once"]


def test_late_is_known_to_be_refused_if_full_rows_fail(scripted: Any, schema: ModelSchema) -> None:
    exhausted = (grpc.StatusCode.RESOURCE_EXHAUSTED, "not now")
    predict = answers(late=REFUSES_LATE, once=EXPANDS_NOTHING, full=[exhausted, None])
    server = scripted(GetModelMetadata=lambda *_: metadata(schema), Predict=predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        with pytest.raises(ServerError, match="RESOURCE_EXHAUSTED"):
            client.rank(USER, ITEMS)
        for _ in range(2):
            client.rank(USER, ITEMS)
    assert kinds(server) == ["late", "once", "full", "once", "full", "full"]


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED])
def test_retries_also_apply_in_place_of_late(
    scripted: Any, schema: ModelSchema, code: grpc.StatusCode
) -> None:
    predict = answers(late=REFUSES_LATE, once=[(code, "restarting"), None])
    server = scripted(GetModelMetadata=lambda *_: metadata(schema), Predict=predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert kinds(server) == ["late", "once", "once", "once"]


@pytest.mark.parametrize("code", PASSING)
def test_what_fails_in_full_is_reported_and_teaches_nothing(
    scripted: Any, schema: ModelSchema, code: grpc.StatusCode
) -> None:
    predict = answers(once=EXPANDS_NOTHING, full=[(code, "not now"), None])
    without = without_late(schema)
    server = scripted(GetModelMetadata=lambda *_: metadata(without), Predict=predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        with pytest.raises(ServerError) as failed:
            client.rank(USER, ITEMS)
        assert (failed.value.code, failed.value.details) == (code.name, "not now")
        for _ in range(2):
            assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert kinds(server) == ["once", "full", "once", "full", "full"]


def test_a_precondition_that_failed_once_leaves_expansion_on(
    scripted: Any, schema: ModelSchema
) -> None:
    of_company = (grpc.StatusCode.FAILED_PRECONDITION, "different shapes, padding is turned off")
    predict = answers(once=[of_company, None])
    without = without_late(schema)
    server = scripted(GetModelMetadata=lambda *_: metadata(without), Predict=predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        with pytest.raises(ServerError, match="padding is turned off"):
            client.rank(USER, ITEMS)
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert kinds(server) == ["once", "once"]


def test_expansion_is_tried_again_after_ten_minutes(
    scripted: Any, schema: ModelSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(_asking.time, "monotonic", lambda: now[0])
    predict = answers(once=[*EXPANDS_NOTHING, None])
    without = without_late(schema)
    server = scripted(GetModelMetadata=lambda *_: metadata(without), Predict=predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        for _ in range(2):
            client.rank(USER, ITEMS)
        now[0] += 601
        for _ in range(2):
            client.rank(USER, ITEMS)
    assert kinds(server) == ["once", "full", "full", "once", "once"]


def test_late_is_tried_again_soon_after_a_failed_second_try(
    scripted: Any, schema: ModelSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(_asking.time, "monotonic", lambda: now[0])
    exhausted = (grpc.StatusCode.RESOURCE_EXHAUSTED, "not now")
    predict = answers(late=[*REFUSES_LATE, exhausted, None])
    server = scripted(GetModelMetadata=lambda *_: metadata(schema), Predict=predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        client.rank(USER, ITEMS)
        now[0] += 601
        with pytest.raises(ServerError, match="RESOURCE_EXHAUSTED"):
            client.rank(USER, ITEMS)
        client.rank(USER, ITEMS)  # other calls wait briefly for the result of the first
        now[0] += 11
        client.rank(USER, ITEMS)
    assert kinds(server) == ["late", "once", "late", "once", "late"]


@pytest.mark.parametrize("target", ["auto", "late"])
def test_the_log_says_once_why_late_is_refused(
    scripted: Any, schema: ModelSchema, caplog: pytest.LogCaptureFixture, target: Any
) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema), Predict=answers(late=REFUSES_LATE)
    )
    with (
        caplog.at_level(logging.WARNING, "colcast.client"),
        RankingClient(server.address, "movies", timeout_seconds=120, target=target) as client,
    ):
        for _ in range(2):
            try:
                client.rank(USER, ITEMS)
            except ServerError:
                assert target == "late"
    (line,) = caplog.messages
    assert "columnar_late" in line
    assert "allowed_batch_sizes" in line
    assert signatures(server)[0] == "columnar_late"


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
def test_a_request_that_a_server_dropped_is_tried_on_the_next_one(
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


def test_an_address_without_a_server_gets_no_calls(scripted: Any, schema: ModelSchema) -> None:
    """The address accepts connections but sends nothing: they stay in the kernel's queue."""
    up = scripted(**answering(schema))
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
