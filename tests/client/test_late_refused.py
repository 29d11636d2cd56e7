"""After refusals that depend on the server, `auto` sends another form, and later tries again."""

import logging
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from colcast.client import ModelSchema, RankingClient, ServerError, _asking
from tensorflow_serving.apis import predict_pb2

from .conftest import ITEMS, USER, scores, without_late

BY_GRAPH = (
    "Shape of tensor _arg_columnar_late/inputs/age_0_3 [3] is not compatible with expected shape"
    " [1].\n\t [[{{node columnar_late/one_row/age}}]]"
)
BY_LIST = (
    "Shape of tensor _arg_columnar_late/inputs/history_0_4 [3,2] is not compatible with expected"
    " shape [1,?]."
)
BY_BATCHING = "Batching session Run() input tensors must have equal 0th-dimension size"


def joins(words: str, lets_late_pass: Any = lambda: False) -> Any:
    """The Predict handler of a server that refuses late requests with this message."""

    def predict(request: bytes, context: grpc.ServicerContext) -> bytes:
        message = predict_pb2.PredictRequest.FromString(request)
        sizes = {tensor.tensor_shape.dim[0].size for tensor in message.inputs.values()}
        late = message.model_spec.signature_name == "columnar_late"
        if len(sizes) > 1 and not (late and lets_late_pass()):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, words if late else BY_BATCHING)
        return scores(request)

    return predict


def signatures(server: Any) -> list[str]:
    """The signatures that were called, in order."""
    return [sent.model_spec.signature_name for sent in server.predicts]


@pytest.mark.parametrize("words", [BY_GRAPH, BY_LIST, BY_BATCHING])
def test_auto_repeats_the_user_where_late_is_refused(
    serves: Any, schema: ModelSchema, words: str
) -> None:
    server = serves(schema, joins(words))
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        for _ in range(3):
            assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
        # the first columnar request sends the user once; it is refused, so the others repeat the
        # user
        assert signatures(server) == ["columnar_late"] + ["columnar"] * 4
        with pytest.raises(ServerError, match="INVALID_ARGUMENT"):
            client.rank(USER, ITEMS, target="late")


def test_late_is_tried_again_after_ten_minutes(
    serves: Any, schema: ModelSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes, now = [False], [1000.0]
    monkeypatch.setattr(_asking.time, "monotonic", lambda: now[0])
    predict = joins(BY_GRAPH, lambda: passes[0])
    server = serves(schema, predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:

        def late_calls() -> int:
            before = signatures(server).count("columnar_late")
            client.rank(USER, ITEMS)
            return signatures(server).count("columnar_late") - before

        assert [late_calls(), late_calls()] == [1, 0]
        now[0] += 601
        assert [late_calls(), late_calls()] == [1, 0]  # late is refused again
        passes[0] = True
        assert late_calls() == 0
        now[0] += 601
        assert [late_calls(), late_calls(), late_calls()] == [1, 1, 1]


@pytest.mark.parametrize(
    "words",
    [
        "Shape of tensor _arg_columnar_late/inputs/age_0_3 [1,2] is not compatible with expected"
        " shape [1,3].\n\t [[{{node columnar_late/one_row/age}}]]",
        "Shape of tensor x [3] is not compatible with expected shape [1].\n\t [[{{node tower}}]]",
        "input year: expected float",
    ],
)
def test_other_mistakes_are_reported_as_they_are(
    serves: Any, schema: ModelSchema, words: str
) -> None:
    server = serves(schema, joins(words))
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        for _ in range(2):
            with pytest.raises(ServerError) as refused:
                client.rank(USER, ITEMS)
            assert refused.value.details == words
    assert signatures(server) == ["columnar_late"] * 2


def test_errors_that_repeated_columns_share_are_the_callers(
    serves: Any, schema: ModelSchema
) -> None:
    def refuses(_: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, BY_GRAPH)
        raise AssertionError

    server = serves(schema, refuses)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        for _ in range(2):
            with pytest.raises(ServerError, match="columnar_late/inputs/age"):
                client.rank(USER, ITEMS)
    assert signatures(server) == ["columnar_late", "columnar", "columnar"] * 2


PASSING = [
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
]
NOT_EXPANDED = "ConcatOp : Dimensions of inputs should match"

Abort = tuple[grpc.StatusCode, str] | None


def kind(message: Any) -> str:
    """The form of a request: "late", "once" (columns of 1 or N rows) or "full"."""
    if message.model_spec.signature_name == "columnar_late":
        return "late"
    sizes = {tensor.tensor_shape.dim[0].size for tensor in message.inputs.values()}
    return "once" if len(sizes) > 1 else "full"


def answers(**aborts: list[Abort]) -> Callable[..., bytes]:
    """A Predict handler that answers or aborts by a script per form, whose last entry repeats."""

    def predict(request: bytes, context: grpc.ServicerContext) -> bytes:
        script = aborts.get(kind(predict_pb2.PredictRequest.FromString(request)), [None])
        found = script.pop(0) if len(script) > 1 else script[0]
        if found:
            context.abort(*found)
        return scores(request)

    return predict


def kinds(server: Any) -> list[str]:
    """The forms of the received requests, in order."""
    return list(map(kind, server.predicts))


REFUSES_LATE: list[Abort] = [(grpc.StatusCode.INVALID_ARGUMENT, BY_GRAPH)]
EXPANDS_NOTHING: list[Abort] = [(grpc.StatusCode.INVALID_ARGUMENT, NOT_EXPANDED)]


@pytest.mark.parametrize("code", PASSING)
def test_what_fails_in_place_of_late_is_reported_and_late_is_known_to_be_refused(
    serves: Any, schema: ModelSchema, code: grpc.StatusCode
) -> None:
    predict = answers(late=REFUSES_LATE, once=[(code, "not now"), None])
    server = serves(schema, predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        with pytest.raises(ServerError) as failed:
            client.rank(USER, ITEMS)
        assert (failed.value.code, failed.value.details) == (code.name, "not now")
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert kinds(server) == ["late", "once", "once", "once"]


def test_late_is_known_to_be_refused_if_full_rows_fail(serves: Any, schema: ModelSchema) -> None:
    exhausted = (grpc.StatusCode.RESOURCE_EXHAUSTED, "not now")
    predict = answers(late=REFUSES_LATE, once=EXPANDS_NOTHING, full=[exhausted, None])
    server = serves(schema, predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        with pytest.raises(ServerError, match="RESOURCE_EXHAUSTED"):
            client.rank(USER, ITEMS)
        for _ in range(2):
            client.rank(USER, ITEMS)
    assert kinds(server) == ["late", "once", "full", "once", "full", "full"]


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED])
def test_retries_also_apply_in_place_of_late(
    serves: Any, schema: ModelSchema, code: grpc.StatusCode
) -> None:
    predict = answers(late=REFUSES_LATE, once=[(code, "restarting"), None])
    server = serves(schema, predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert kinds(server) == ["late", "once", "once", "once"]


@pytest.mark.parametrize("code", PASSING)
def test_what_fails_in_full_is_reported_and_teaches_nothing(
    serves: Any, schema: ModelSchema, code: grpc.StatusCode
) -> None:
    predict = answers(once=EXPANDS_NOTHING, full=[(code, "not now"), None])
    without = without_late(schema)
    server = serves(without, predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        with pytest.raises(ServerError) as failed:
            client.rank(USER, ITEMS)
        assert (failed.value.code, failed.value.details) == (code.name, "not now")
        for _ in range(2):
            assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert kinds(server) == ["once", "full", "once", "full", "full"]


def test_a_precondition_that_failed_once_leaves_expansion_on(
    serves: Any, schema: ModelSchema
) -> None:
    of_company = (grpc.StatusCode.FAILED_PRECONDITION, "different shapes, padding is turned off")
    predict = answers(once=[of_company, None])
    without = without_late(schema)
    server = serves(without, predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        with pytest.raises(ServerError, match="padding is turned off"):
            client.rank(USER, ITEMS)
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert kinds(server) == ["once", "once"]


def test_expansion_is_tried_again_after_ten_minutes(
    serves: Any, schema: ModelSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(_asking.time, "monotonic", lambda: now[0])
    predict = answers(once=[*EXPANDS_NOTHING, None])
    without = without_late(schema)
    server = serves(without, predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        for _ in range(2):
            client.rank(USER, ITEMS)
        now[0] += 601
        for _ in range(2):
            client.rank(USER, ITEMS)
    assert kinds(server) == ["once", "full", "full", "once", "once"]


def test_late_is_tried_again_soon_after_a_failed_second_try(
    serves: Any, schema: ModelSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(_asking.time, "monotonic", lambda: now[0])
    exhausted = (grpc.StatusCode.RESOURCE_EXHAUSTED, "not now")
    predict = answers(late=[*REFUSES_LATE, exhausted, None])
    server = serves(schema, predict)
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
    serves: Any, schema: ModelSchema, caplog: pytest.LogCaptureFixture, target: Any
) -> None:
    server = serves(schema, answers(late=REFUSES_LATE))
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
