"""The blocking and the async client against a scripted server: versions, deadlines, encoding."""

import asyncio
import threading
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.client import (
    AsyncRankingClient,
    ColcastError,
    InputError,
    ModelSchema,
    RankingClient,
    ServerError,
)
from colcast.client.request._request import build_request
from tensorflow_serving.apis import predict_pb2

from .conftest import ITEMS, USER, client_of, metadata, scores, without_late


def test_ranking_and_what_the_server_saw(serves: Any):
    server = serves()
    with client_of(server) as client:
        ranking = client.rank(USER, ITEMS, metadata=[("x-request", "17")])
        assert ranking.order.tolist() == [2, 1, 0]
        assert [tuple(place) for place in ranking.top(2)] == [(2, 11.0), (1, 9.0)]
        assert ranking.model_version == 3
        client.rank(USER, ITEMS)
    assert server.count("GetModelMetadata") == 1
    assert server.count("Predict") == 2
    assert server.requests[1][2]["x-request"] == "17"


def test_encode_makes_the_request_that_rank_sends(serves: Any):
    server = serves()
    with client_of(server) as client:
        request = client.encode(USER, ITEMS)
        assert server.count("Predict") == 0
        assert client.send(request).order.tolist() == client.rank(USER, ITEMS).order.tolist()
    sent = [body for name, body, _ in server.requests if name == "Predict"]
    assert sent == [request, request]


def test_metadata_says_what_the_model_has(serves: Any, schema: ModelSchema):
    server = serves(schema)
    with client_of(server) as client:
        found = client.schema()
    assert (found.model, found.version) == ("movies", 3)
    for name, signature in schema.signatures.items():
        assert found.signature(name).inputs == signature.inputs
        assert found.signature(name).method == signature.method
    np.testing.assert_array_equal(found.signature("columnar").defaults["year"], [1990.0])


def test_lasting_unavailability_is_reported_with_the_attempts(serves: Any):
    left: list[float] = []

    def unavailable(request: bytes, context: grpc.ServicerContext) -> bytes:
        left.append(context.time_remaining())
        context.abort(grpc.StatusCode.UNAVAILABLE, "warming up")
        raise AssertionError

    server = serves(predict=unavailable)
    with client_of(server) as client:
        client.schema()
        with pytest.raises(ServerError) as failed:
            client.rank(USER, ITEMS, timeout_seconds=0.5)
    # the deadline may end during the last attempt
    assert failed.value.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
    assert failed.value.attempts >= server.count("Predict") > 2
    assert left[-1] < left[0] < 0.6  # one deadline for all attempts; gRPC rounds it up


def test_the_deadline_covers_the_whole_call(serves: Any):
    release, finished = threading.Event(), threading.Event()

    def hang(request: bytes, context: grpc.ServicerContext) -> bytes:
        release.wait(30)
        finished.set()
        return scores(request)

    server = serves(predict=hang)
    with client_of(server, timeout_seconds=0.2) as client:
        with pytest.raises(ServerError, match="DEADLINE_EXCEEDED"):
            client.rank(USER, ITEMS)
        assert not finished.is_set()
    release.set()


def test_a_new_version_is_asked_for_its_signatures(serves: Any, schema: ModelSchema):
    version = [3]
    server = serves(
        schema,
        lambda request, _: scores(request, version[0]),
        GetModelMetadata=lambda *_: metadata(schema, version[0]),
    )
    with client_of(server) as client:
        client.rank(USER, ITEMS)
        version[0] = 4
        assert client.rank(USER, ITEMS).model_version == 4
        assert server.count("GetModelMetadata") == 1
        client.rank(USER, ITEMS)
        client.rank(USER, ITEMS)
        assert client.schema().version == 4
    assert server.count("GetModelMetadata") == 2


def test_a_request_refused_by_a_new_version_is_built_again(serves: Any, schema: ModelSchema):
    served = [(schema, 3)]

    def predict(request: bytes, context: grpc.ServicerContext) -> bytes:
        message = predict_pb2.PredictRequest.FromString(request)
        if message.model_spec.signature_name not in served[0][0].signatures:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no such signature")
        return scores(request, served[0][1])

    server = serves(schema, predict, GetModelMetadata=lambda *_: metadata(*served[0]))
    with client_of(server) as client:
        client.rank(USER, ITEMS)
        served[0] = (without_late(schema), 4)
        assert client.rank(USER, ITEMS).model_version == 4


def test_a_call_without_time_and_one_of_a_closed_client_are_refused():
    client = RankingClient("127.0.0.1:1", "movies")
    for seconds in (0, -1, float("nan")):
        with pytest.raises(InputError, match="timeout_seconds must be above 0"):
            client.rank(USER, ITEMS, timeout_seconds=seconds)
    client.close()
    with pytest.raises(ColcastError, match="the client is closed"):
        client.rank(USER, ITEMS)


async def test_rank_encode_and_send(serves: Any):
    server = serves()
    async with AsyncRankingClient(server.address, "movies") as client:
        ranking = await client.rank(USER, ITEMS)
        assert ranking.order.tolist() == [2, 1, 0]
        request = await client.encode(USER, ITEMS, target="example")
        assert len(request) > 0
        assert (await client.schema()).version == 3
        sent = await client.send(await client.encode(USER, ITEMS))
        assert sent.scores.tolist() == ranking.scores.tolist()
    assert server.count("GetModelMetadata") == 1


async def test_errors_are_the_same(serves: Any):
    server = serves(
        predict=lambda _, context: context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "queue full")
    )
    client = AsyncRankingClient(server.address, "movies")
    with pytest.raises(InputError, match="feature 'age'"):
        await client.rank({}, ITEMS)
    with pytest.raises(ServerError, match=r"RESOURCE_EXHAUSTED .*: queue full"):
        await client.rank(USER, ITEMS)
    await client.close()
    with pytest.raises(ColcastError, match="the client is closed"):
        await client.rank(USER, ITEMS)


def test_one_client_for_several_event_loops(serves: Any):
    server = serves()
    client = AsyncRankingClient(server.address, "movies", timeout_seconds=120)
    for _ in range(2):
        assert asyncio.run(client.rank(USER, ITEMS)).order.tolist() == [2, 1, 0]


async def test_many_candidates_are_encoded_beside_the_loop(
    serves: Any, monkeypatch: pytest.MonkeyPatch
):
    server = serves()
    goes_on = threading.Event()

    def waits_for_the_loop(*args: Any) -> Any:
        assert goes_on.wait(60)
        return build_request(*args)

    monkeypatch.setattr("colcast.client._asking.build_request", waits_for_the_loop)
    async with AsyncRankingClient(server.address, "movies", timeout_seconds=120) as client:
        call = asyncio.ensure_future(client.rank(USER, ITEMS * 400))
        while not server.count("GetModelMetadata"):
            await asyncio.sleep(0.01)
        goes_on.set()
        assert len((await call).scores) == 1200
