"""Behaviour that only a scripted server can show: lost connections, versions, deadlines, TLS."""

import threading
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.client import (
    ChannelOptions,
    InputError,
    ModelSchema,
    RankingClient,
    ServerError,
)
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, predict_pb2

from .conftest import ITEMS, USER


def metadata(schema: ModelSchema, version: int = 3) -> bytes:
    """The GetModelMetadataResponse of a schema, built with protobuf."""
    signatures = get_model_metadata_pb2.SignatureDefMap()
    for name, signature in schema.signatures.items():
        found = meta_graph_pb2.SignatureDef(method_name=signature.method)
        for specs, target in ((signature.inputs, found.inputs), (signature.outputs, found.outputs)):
            for key, spec in specs.items():
                target[key].dtype = spec.dtype.number
                target[key].tensor_shape.CopyFrom(tf.TensorShape(spec.shape).as_proto())
        for key, default in signature.defaults.items():
            found.defaults[key].CopyFrom(tf.make_tensor_proto(default))
        signatures.signature_def[name].CopyFrom(found)
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name = schema.model
    response.model_spec.version.value = version
    response.metadata["signature_def"].Pack(signatures)
    return response.SerializeToString()


def scores(request: bytes, version: int = 3) -> bytes:
    """An answer: each movie's id as its score."""
    movies = predict_pb2.PredictRequest.FromString(request).inputs["movie"]
    response = predict_pb2.PredictResponse()
    response.model_spec.version.value = version
    response.outputs["scores"].CopyFrom(
        tf.make_tensor_proto(tf.make_ndarray(movies).astype(np.float32))
    )
    return response.SerializeToString()


def unavailable_until(attempt: int, answer: Any) -> Any:
    """A handler that answers UNAVAILABLE until its n-th call."""
    calls = iter(range(1, 1_000_000))

    def handle(request: bytes, context: grpc.ServicerContext) -> bytes:
        if next(calls) < attempt:
            context.abort(grpc.StatusCode.UNAVAILABLE, "warming up")
        answered: bytes = answer(request, context)
        return answered

    return handle


def test_ranking_and_what_the_server_saw(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema), Predict=lambda request, _: scores(request)
    )
    with RankingClient(server.address, "movies") as client:
        ranking = client.rank(USER, ITEMS, metadata=[("x-request", "17")])
        assert ranking.order.tolist() == [2, 1, 0]
        assert [tuple(place) for place in ranking.top(2)] == [(2, 11.0), (1, 9.0)]
        assert ranking.model_version == 3
        client.rank(USER, ITEMS)
    assert server.count("GetModelMetadata") == 1
    assert server.count("Predict") == 2
    assert server.requests[1][2]["x-request"] == "17"


def test_encode_makes_the_request_that_rank_sends(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema), Predict=lambda request, _: scores(request)
    )
    with RankingClient(server.address, "movies") as client:
        request = client.encode(USER, ITEMS)
        assert server.count("Predict") == 0
        assert client.send(request).order.tolist() == client.rank(USER, ITEMS).order.tolist()
    sent = [body for name, body, _ in server.requests if name == "Predict"]
    assert sent == [request, request]


def test_metadata_says_what_the_model_has(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(GetModelMetadata=lambda *_: metadata(schema))
    with RankingClient(server.address, "movies") as client:
        found = client.schema()
    assert (found.model, found.version) == ("movies", 3)
    for name, signature in schema.signatures.items():
        assert found.signature(name).inputs == signature.inputs
        assert found.signature(name).method == signature.method
    np.testing.assert_array_equal(found.signature("columnar").defaults["year"], [1990.0])


def test_unavailable_is_tried_again_within_the_deadline(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema),
        Predict=unavailable_until(4, lambda request, _: scores(request)),
    )
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
    assert server.count("Predict") == 4


def test_lasting_unavailability_is_reported_with_the_attempts(
    scripted: Any, schema: ModelSchema
) -> None:
    left: list[float] = []

    def unavailable(request: bytes, context: grpc.ServicerContext) -> bytes:
        left.append(context.time_remaining())
        context.abort(grpc.StatusCode.UNAVAILABLE, "warming up")
        raise AssertionError

    server = scripted(GetModelMetadata=lambda *_: metadata(schema), Predict=unavailable)
    with RankingClient(server.address, "movies") as client:
        client.schema()
        with pytest.raises(ServerError) as failed:
            client.rank(USER, ITEMS, timeout_seconds=0.5)
    # the deadline may cut off the last attempt
    assert failed.value.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
    assert failed.value.attempts >= server.count("Predict") > 2
    assert left[-1] < left[0] < 0.6  # attempts share the deadline, which gRPC rounds up


@pytest.mark.parametrize("code", [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INTERNAL])
def test_no_other_status_is_tried_again(scripted: Any, schema: ModelSchema, code: Any) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema),
        Predict=lambda _, context: context.abort(code, "no"),
    )
    with RankingClient(server.address, "movies") as client, pytest.raises(ServerError) as failed:
        client.rank(USER, ITEMS)
    assert (failed.value.code, failed.value.attempts) == (code.name, 1)
    assert server.count("Predict") == 1


def test_the_deadline_covers_the_whole_call(scripted: Any, schema: ModelSchema) -> None:
    release, finished = threading.Event(), threading.Event()

    def hang(request: bytes, context: grpc.ServicerContext) -> bytes:
        release.wait(30)
        finished.set()
        return scores(request)

    server = scripted(GetModelMetadata=lambda *_: metadata(schema), Predict=hang)
    with RankingClient(server.address, "movies", timeout_seconds=0.2) as client:
        with pytest.raises(ServerError, match="DEADLINE_EXCEEDED"):
            client.rank(USER, ITEMS)
        assert not finished.is_set()
    release.set()


def test_a_new_version_is_asked_for_its_signatures(scripted: Any, schema: ModelSchema) -> None:
    version = [3]
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema, version[0]),
        Predict=lambda request, _: scores(request, version[0]),
    )
    with RankingClient(server.address, "movies") as client:
        client.rank(USER, ITEMS)
        version[0] = 4
        assert client.rank(USER, ITEMS).model_version == 4
        assert server.count("GetModelMetadata") == 1
        client.rank(USER, ITEMS)
        client.rank(USER, ITEMS)
        assert client.schema().version == 4
    assert server.count("GetModelMetadata") == 2


def test_a_request_refused_by_a_new_version_is_built_again(
    scripted: Any, schema: ModelSchema
) -> None:
    served = [(schema, 3)]

    def predict(request: bytes, context: grpc.ServicerContext) -> bytes:
        message = predict_pb2.PredictRequest.FromString(request)
        if message.model_spec.signature_name not in served[0][0].signatures:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no such signature")
        return scores(request, served[0][1])

    server = scripted(GetModelMetadata=lambda *_: metadata(*served[0]), Predict=predict)
    with RankingClient(server.address, "movies") as client:
        client.rank(USER, ITEMS)
        served[0] = (without_late(schema), 4)
        assert client.rank(USER, ITEMS).model_version == 4


def without_late(schema: ModelSchema) -> ModelSchema:
    """The model as exported without --late."""
    kept = {name: each for name, each in schema.signatures.items() if name != "columnar_late"}
    return ModelSchema(schema.model, schema.version, kept)


def expands_nothing(request: bytes, context: grpc.ServicerContext) -> bytes:
    """Predict of a server that does not repeat rows, like TensorFlow Serving."""
    inputs = predict_pb2.PredictRequest.FromString(request).inputs
    if len({tensor.tensor_shape.dim[0].size for tensor in inputs.values()}) > 1:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "ConcatOp : Dimensions of inputs")
    return scores(request)


def test_auto_finds_out_that_a_server_does_not_expand(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(without_late(schema)), Predict=expands_nothing
    )
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
        assert server.count("Predict") == 2
        client.rank(USER, ITEMS)
        assert server.count("Predict") == 3
        with pytest.raises(ServerError, match="ConcatOp"):
            client.rank(USER, ITEMS, target="columnar")


def test_a_request_that_any_server_answers_proves_nothing(
    scripted: Any, schema: ModelSchema
) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(without_late(schema)), Predict=expands_nothing
    )
    with RankingClient(server.address, "movies", timeout_seconds=120, dedupe="off") as client:
        rows = [{**USER, "age": 30 + i, **item} for i, item in enumerate(ITEMS)]
        client.rank(items=[{"year": 1.0, **row} for row in rows])
        assert server.count("Predict") == 1
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]
        assert server.count("Predict") == 3


def test_a_server_that_expands_is_trusted(scripted: Any, schema: ModelSchema) -> None:
    refused = [False]

    def predict(request: bytes, context: grpc.ServicerContext) -> bytes:
        if refused[0]:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not today")
        return scores(request)

    server = scripted(GetModelMetadata=lambda *_: metadata(without_late(schema)), Predict=predict)
    with RankingClient(server.address, "movies", timeout_seconds=120) as client:
        client.rank(USER, ITEMS)
        assert client.rank(items=[{**USER, **item} for item in ITEMS]).model_version == 3
        refused[0] = True
        with pytest.raises(ServerError, match="not today"):
            client.rank(USER, ITEMS)
    assert server.count("Predict") == 3


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_call_without_time_is_refused(seconds: float) -> None:
    with (
        RankingClient("127.0.0.1:1", "movies") as client,
        pytest.raises(InputError, match="timeout_seconds must be above 0"),
    ):
        client.rank(USER, ITEMS, timeout_seconds=seconds)


def test_several_addresses_share_the_calls_without_a_user(
    scripted: Any, schema: ModelSchema
) -> None:
    servers = [
        scripted(
            GetModelMetadata=lambda *_: metadata(schema), Predict=lambda request, _: scores(request)
        )
        for _ in range(2)
    ]
    addresses = [f"localhost:{server.port}" for server in servers]
    with RankingClient(addresses, "movies", timeout_seconds=120, affinity="off") as client:
        while not all(server.count("Predict") for server in servers):
            client.rank(USER, ITEMS)
        before = [server.count("Predict") for server in servers]
        for _ in range(10):
            client.rank(USER, ITEMS)
    assert [server.count("Predict") - had for server, had in zip(servers, before, strict=True)] == [
        5,
        5,
    ]


def test_gzip_is_asked_for_in_the_request(scripted: Any, schema: ModelSchema) -> None:
    server = scripted(
        GetModelMetadata=lambda *_: metadata(schema), Predict=lambda request, _: scores(request)
    )
    channel = ChannelOptions(gzip=True)
    with RankingClient(server.address, "movies", channel=channel) as client:
        assert client.rank(USER, ITEMS).order.tolist() == [2, 1, 0]


def test_a_closed_client_says_so(scripted: Any) -> None:
    client = RankingClient("127.0.0.1:1", "movies")
    client.close()
    with pytest.raises(Exception, match="the client is closed"):
        client.rank(USER, ITEMS)
