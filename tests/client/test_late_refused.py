"""A server that joins requests cannot run a late model: `auto` repeats the user's columns there."""

from typing import Any

import grpc
import pytest
from colcast.client import ModelSchema, RankingClient, ServerError, _asking
from tensorflow_serving.apis import predict_pb2

from .conftest import ITEMS, USER
from .test_transport import metadata, scores

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
    """Predict of a server that refuses late requests with this message."""

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
    sent = [body for name, body, _ in server.requests if name == "Predict"]
    return [predict_pb2.PredictRequest.FromString(one).model_spec.signature_name for one in sent]


@pytest.mark.parametrize("words", [BY_GRAPH, BY_LIST, BY_BATCHING])
def test_auto_repeats_the_user_where_late_is_refused(
    scripted: Any, schema: ModelSchema, words: str
) -> None:
    server = scripted(GetModelMetadata=lambda *_: metadata(schema), Predict=joins(words))
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        for _ in range(3):
            assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
        assert signatures(server) == ["columnar_late"] + ["columnar"] * 4  # once, stock, ...
        with pytest.raises(ServerError, match="INVALID_ARGUMENT"):
            client.rank(USER, ITEMS, target="late")


def test_late_is_tried_again_after_ten_minutes(
    scripted: Any, schema: ModelSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes, now = [False], [1000.0]
    monkeypatch.setattr(_asking.time, "monotonic", lambda: now[0])
    predict = joins(BY_GRAPH, lambda: passes[0])
    server = scripted(GetModelMetadata=lambda *_: metadata(schema), Predict=predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:

        def late_calls() -> int:
            before = signatures(server).count("columnar_late")
            client.rank(USER, ITEMS)
            return signatures(server).count("columnar_late") - before

        assert [late_calls(), late_calls()] == [1, 0]
        now[0] += 601
        assert [late_calls(), late_calls()] == [1, 0]  # refused again
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
    scripted: Any, schema: ModelSchema, words: str
) -> None:
    server = scripted(GetModelMetadata=lambda *_: metadata(schema), Predict=joins(words))
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        for _ in range(2):
            with pytest.raises(ServerError) as refused:
                client.rank(USER, ITEMS)
            assert refused.value.details == words
    assert signatures(server) == ["columnar_late"] * 2


def test_errors_that_repeated_columns_share_are_the_callers(
    scripted: Any, schema: ModelSchema
) -> None:
    def refuses(_: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, BY_GRAPH)
        raise AssertionError

    server = scripted(GetModelMetadata=lambda *_: metadata(schema), Predict=refuses)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        for _ in range(2):
            with pytest.raises(ServerError, match="columnar_late/inputs/age"):
                client.rank(USER, ITEMS)
    assert signatures(server) == ["columnar_late", "columnar", "columnar"] * 2
