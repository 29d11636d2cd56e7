"""What the client sends depends on what the server declares, never on the text of an error."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.client import ModelSchema, ServerError, Target, _asking
from tensorflow_serving.apis import predict_pb2

from .conftest import CAN, ITEMS, OTHER, USER, client_of, described, scores, stock, without_late

UNKNOWN = "input row_to_user is not in the signature"


def form(message: Any) -> str:
    """The form of a request: "late", "once" (columns of 1 or N rows), "users" or "full"."""
    if "row_to_user" in message.inputs:
        return "users"
    if message.model_spec.signature_name == "columnar_late":
        return "late"
    sizes = {tensor.tensor_shape.dim[0].size for tensor in message.inputs.values()}
    return "once" if len(sizes) > 1 else "full"


def forms(server: Any) -> list[str]:
    """The forms of the received requests, in order."""
    return list(map(form, server.predicts))


def refuses(*refused: str) -> Callable[..., bytes]:
    """The Predict handler of a server that refuses these forms."""

    def predict(request: bytes, context: grpc.ServicerContext) -> bytes:
        if form(predict_pb2.PredictRequest.FromString(request)) in refused:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, UNKNOWN)
        return scores(request)

    return predict


@pytest.mark.parametrize(
    ("can", "late", "fork", "expected"),
    [
        (CAN, True, False, "late"),
        (CAN, False, False, "once"),
        ({"expand"}, False, False, "once"),
        ((), True, False, "late"),
        ((), False, False, "full"),
        ((), False, True, "once"),
        ({"index", "word of a later release"}, False, False, "full"),
    ],
)
def test_auto_sends_what_the_server_declares(
    serves: Any, schema: ModelSchema, can: Any, late: bool, fork: bool, expected: str
):
    declared = replace(schema if late else without_late(schema), can=frozenset(can))
    server = serves(declared)
    with client_of(server, fork=fork) as client:
        assert client.schema().can == (declared.can or ({"expand"} if fork else set()))
        for _ in range(2):
            assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert forms(server) == [expected] * 2
    assert server.count("GetModelMetadata") == 1


def test_stock_servers_get_users_one_by_one_and_no_prefetch(serves: Any, parts: ModelSchema):
    server = serves(stock(parts))
    with client_of(server) as client:
        assert len(client.rank_many([(USER, ITEMS), (OTHER, ITEMS[:1])])) == 2
        assert not client.prefetch(USER)
    assert forms(server) == ["late", "late"]


def test_stock_servers_get_the_defaults_of_absent_features(serves: Any, schema: ModelSchema):
    """Older ones know no defaults."""
    late = schema.signatures["columnar_late"]
    empty = {"history": np.zeros((1, 0), np.int64), "history/length": np.zeros(1, np.int64)}
    late = replace(late, defaults={**late.defaults, **empty})
    model = replace(schema, signatures={**schema.signatures, "columnar_late": late})
    user = {name: value for name, value in USER.items() if name != "history"}
    for each, sent in ((stock(model), True), (model, False)):
        server = serves(each)
        with client_of(server) as client:
            client.rank(user, ITEMS)
        (request,) = server.predicts
        assert ("history" in request.inputs) == ("history/length" in request.inputs) == sent


@pytest.mark.parametrize("target", ["auto", "late", "columnar"])
@pytest.mark.parametrize("can", [CAN, ()])
def test_a_refusal_is_reported_as_it_is(serves: Any, schema: ModelSchema, target: Target, can: Any):
    server = serves(replace(schema, can=frozenset(can)), refuses("late", "once", "full"))
    with client_of(server, target=target) as client:
        for _ in range(2):
            with pytest.raises(ServerError) as refused:
                client.rank(USER, ITEMS)
            assert refused.value.details == UNKNOWN
            assert refused.value.server == server.address
    assert len(server.predicts) == 2


@pytest.mark.parametrize("code", ["RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "INTERNAL"])
def test_errors_that_pass_are_reported_and_change_nothing(serves: Any, code: str):
    failing = iter([grpc.StatusCode[code]])

    def predict(request: bytes, context: grpc.ServicerContext) -> bytes:
        if (once := next(failing, None)) is not None:
            context.abort(once, "not now")
        return scores(request)

    server = serves(predict=predict)
    with client_of(server) as client:
        with pytest.raises(ServerError, match=code) as failed:
            client.rank(USER, ITEMS)
        assert failed.value.attempts == 1
        client.rank(USER, ITEMS)
    assert forms(server) == ["late", "late"]
    assert server.count("GetModelMetadata") == 1


def test_a_stock_replica_that_refuses_gets_a_plain_request(serves: Any, parts: ModelSchema):
    """The client asks the replica that refused; another one would still declare everything."""
    model = [parts]
    ours = serves(parts)
    other = serves(
        parts, refuses("users"), GetModelMetadata=lambda _, context: described(model[0], context)
    )
    # Each user twice: the only pair of a server would be sent alone.
    pairs = [({**USER, "age": age}, ITEMS) for age in range(8)] * 2
    with client_of(ours, other) as client:
        assert client.schema().can == CAN
        model[0] = stock(parts)
        before = other.count("GetModelMetadata")
        while not other.count("Predict"):
            for ranking in client.rank_many(pairs):
                assert ranking.order.tolist() == [2, 1, 0]
    assert forms(other)[0] == "users"
    assert set(forms(other)[1:]) <= {"late"}
    assert other.count("GetModelMetadata") > before


def test_a_server_that_became_stock_gets_plain_requests(serves: Any, schema: ModelSchema):
    model = [without_late(schema)]
    server = serves(
        model[0], refuses("once"), GetModelMetadata=lambda _, context: described(model[0], context)
    )
    with client_of(server) as client:
        with pytest.raises(ServerError, match=UNKNOWN):
            client.rank(USER, ITEMS)
        model[0] = stock(model[0])
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
        client.rank(USER, ITEMS)
    assert forms(server) == ["once", "once", "full", "full"]


def test_a_stock_server_is_asked_again_after_ten_minutes(
    serves: Any, schema: ModelSchema, monkeypatch: pytest.MonkeyPatch
):
    now = [1000.0]
    monkeypatch.setattr(_asking.time, "monotonic", lambda: now[0])
    model = [stock(without_late(schema))]
    server = serves(model[0], GetModelMetadata=lambda _, context: described(model[0], context))
    with client_of(server) as client:
        client.rank(USER, ITEMS)
        model[0] = without_late(schema)
        client.rank(USER, ITEMS)
        now[0] += 601
        client.rank(USER, ITEMS)
        now[0] += 601
        client.rank(USER, ITEMS)
    assert forms(server) == ["full", "full", "once", "once"]
    assert server.count("GetModelMetadata") == 2


def test_a_server_that_cannot_be_asked_again_is_still_called(
    serves: Any, schema: ModelSchema, monkeypatch: pytest.MonkeyPatch
):
    now = [1000.0]
    monkeypatch.setattr(_asking.time, "monotonic", lambda: now[0])
    answers = iter([True])

    def ask(_: bytes, context: grpc.ServicerContext) -> bytes:
        if not next(answers, False):
            context.abort(grpc.StatusCode.INTERNAL, "no metadata")
        return described(stock(schema), context)

    server = serves(schema, GetModelMetadata=ask)
    with client_of(server) as client:
        client.rank(USER, ITEMS)
        now[0] += 601
        for _ in range(3):
            client.rank(USER, ITEMS)
    assert server.count("GetModelMetadata") == 2
