"""Wrong requests get the right code and the culprit's name."""

import grpc
import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess
from google.protobuf import text_format
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import get_model_status_pb2

from .conftest import bytes_method

MANY = 1 << 40


def tensor(text: str) -> tensor_pb2.TensorProto:
    """A TensorProto from its text form."""
    return text_format.Parse(text, tensor_pb2.TensorProto())


def shape(*sizes: int) -> str:
    """The text form of a tensor_shape."""
    return "tensor_shape { " + " ".join(f"dim {{ size: {size} }}" for size in sizes) + " }"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("age", f"dtype: DT_INT32 {shape(1)} int_val: 3", ["int32", "int64"]),
        ("age", "dtype: DT_INT64 tensor_shape { unknown_rank: true } int64_val: 3", ["rank"]),
        ("age", f"dtype: DT_INT64 {shape(-1)} int64_val: 3", ["-1"]),
        ("age", f"dtype: DT_INT64 {shape(1 << 32, 1 << 32)} int64_val: 3", ["4294967296"]),
        ("age", f"dtype: DT_INT64 {shape(*[1] * 255)} int64_val: 3", ["more than 254 dimensions"]),
        ("title", f"dtype: DT_STRING {shape(1)} string_val: ['a', 'b']", ["2 values"]),
        ("title", f"dtype: DT_STRING {shape(1)} tensor_content: '\\005ab'", ["5 bytes", "2 were"]),
        ("title", f"dtype: DT_STRING {shape(3)} tensor_content: 'ab'", ["2 bytes", "3 strings"]),
        ("age", "dtype: DT_INT64 int64_val: 3", ["[]"]),
        ("pair", f"dtype: DT_FLOAT {shape(3, 3)} float_val: 1", ["[3,3]", "[?,2]"]),
        ("pair", f"dtype: DT_FLOAT {shape(2, 2)} float_val: 1", ["2 rows", "3"]),
        ("pair", f"dtype: DT_FLOAT {shape(0, 2)}", ["0 rows"]),
        ("pair", f"dtype: DT_FLOAT {shape(1, 2)} double_val: [1, 2]", ["double_val", "float_val"]),
        ("age", f"dtype: DT_INT64 {shape(1)} int64_val: 1 int_val: 3", ["int_val", "int64_val"]),
        (
            "pair",
            f"dtype: DT_FLOAT {shape(1, 2)} float_val: 1 tensor_content: '12345678'",
            ["float_val", "tensor_content"],
        ),
    ],
)
def test_a_wrong_tensor_is_refused_by_name(expect_refused, good_request, name, text, words):
    good_request.inputs[name].CopyFrom(tensor(text))
    expect_refused(good_request.SerializeToString(), "INVALID_ARGUMENT", f'"{name}"', *words)


def test_zero_rows_give_an_empty_answer(client, good_request):
    for name, text in {
        "age": f"dtype: DT_INT64 {shape(0)}",
        "pair": f"dtype: DT_FLOAT {shape(0, 2)}",
        "title": f"dtype: DT_STRING {shape(0)}",
        "seen": f"dtype: DT_BOOL {shape(0)}",
    }.items():
        good_request.inputs[name].CopyFrom(tensor(text))
    outputs = client.send(good_request.SerializeToString()).outputs
    assert tf.make_ndarray(outputs["score"]).shape == (0,)
    assert tf.make_ndarray(outputs["name"]).shape == (0,)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("age", f"dtype: DT_INT64 {shape(MANY)} int64_val: 1"),
        ("age", f"dtype: DT_INT64 {shape(MANY)}"),
        ("age", f"dtype: DT_INT64 {shape((1 << 62) - 1)} int64_val: 1"),
        ("pair", f"dtype: DT_FLOAT {shape(MANY, 2)} float_val: 1"),
        ("title", f"dtype: DT_STRING {shape(MANY)} string_val: 'x'"),
        ("title", f"dtype: DT_STRING {shape(MANY)}"),
    ],
)
def test_one_value_can_not_fill_the_memory(expect_refused, good_request, server, name, text):
    """TensorFlow repeats a short list's last value, so a few bytes can ask for terabytes."""
    for other in good_request.inputs:
        if other != name:
            first = tf.make_ndarray(good_request.inputs[other])[:1]
            good_request.inputs[other].CopyFrom(tf.make_tensor_proto(first))
    good_request.inputs[name].CopyFrom(tensor(text))
    meter = ProcessMeter(server.pid)
    before = meter.peak_memory_bytes()
    expect_refused(good_request.SerializeToString(), "RESOURCE_EXHAUSTED", f'"{name}"')
    assert meter.peak_memory_bytes() - before < 1 << 28


PREDICTION, MODELS = "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"


@pytest.fixture
def send(server: ServerProcess):
    """A function that sends bytes to any method; it raises grpc.RpcError."""
    with grpc.insecure_channel(server.target) as channel:
        yield lambda service, method, message: bytes_method(channel, f"/{service}/{method}")(
            message, timeout=60
        )


@pytest.mark.parametrize(
    ("service", "method", "name"),
    [
        (PREDICTION, "GetModelMetadata", "GetModelMetadataRequest"),
        (MODELS, "GetModelStatus", "GetModelStatusRequest"),
        (MODELS, "HandleReloadConfigRequest", "ReloadConfigRequest"),
    ],
)
@pytest.mark.parametrize("message", [b"\xff" * 10, b"\x0a\x05abc", b"\x0e\x01"])
def test_refused_by_name_and_nothing_changes(send, service, method, name, message):
    with pytest.raises(grpc.RpcError) as raised:
        send(service, method, message)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert f"malformed {name}" in raised.value.details()
    assert f"{len(message)} bytes" in raised.value.details()
    assert served_states(send) == [get_model_status_pb2.ModelVersionStatus.AVAILABLE]


def test_a_message_too_large_for_the_reading_thread_is_refused(send):
    with pytest.raises(grpc.RpcError) as raised:
        send(MODELS, "GetModelStatus", bytes(5 << 20))
    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    words = f"the GetModelStatusRequest has {5 << 20} bytes; at most {4 << 20}"
    assert words in raised.value.details()
    assert served_states(send) == [get_model_status_pb2.ModelVersionStatus.AVAILABLE]


def test_an_unknown_method_is_unimplemented(send):
    with pytest.raises(grpc.RpcError) as raised:
        send(PREDICTION, "Guess", b"")
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert served_states(send) == [get_model_status_pb2.ModelVersionStatus.AVAILABLE]


def served_states(send):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "target"
    answer = send(MODELS, "GetModelStatus", request.SerializeToString())
    versions = get_model_status_pb2.GetModelStatusResponse.FromString(answer).model_version_status
    return [version.state for version in versions]
