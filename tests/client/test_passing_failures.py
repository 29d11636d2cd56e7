"""What a server may do the next time tells nothing about what it can do."""

import logging
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from colcast.client import ModelSchema, RankingClient, ServerError, _asking
from tensorflow_serving.apis import predict_pb2

from .conftest import ITEMS, USER
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
    """Predict that ends the n-th request of a kind as its list says; the last entry stays."""

    def predict(request: bytes, context: grpc.ServicerContext) -> bytes:
        script = aborts.get(kind(request), [None])
        found = script.pop(0) if len(script) > 1 else script[0]
        if found:
            context.abort(*found)
        return scores(request)

    return predict


def kinds(server: Any) -> list[str]:
    """The kinds of the requests that came, in order."""
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


def test_late_is_known_to_be_refused_where_rows_in_full_fail(
    scripted: Any, schema: ModelSchema
) -> None:
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
def test_what_is_retried_is_retried_in_place_of_late_too(
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


def test_late_is_tried_again_soon_where_its_second_chance_came_to_nothing(
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
        client.rank(USER, ITEMS)  # others wait a little for what was to be learned
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
