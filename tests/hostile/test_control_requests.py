"""Bytes that are no message of the methods that ask for or change what is served."""

import grpc
import pytest
from colcast.server import ServerProcess
from tensorflow_serving.apis import get_model_status_pb2

from .conftest import bytes_method

PREDICTION, MODELS = "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"


@pytest.fixture
def send(server: ServerProcess):
    """Sends bytes to any method; raises grpc.RpcError."""
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


def test_a_message_too_large_for_the_thread_that_reads_all_is_refused(send):
    with pytest.raises(grpc.RpcError) as raised:
        send(MODELS, "GetModelStatus", bytes(5 << 20))
    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    words = f"the GetModelStatusRequest has {5 << 20} bytes; at most {4 << 20}"
    assert words in raised.value.details()
    assert served_states(send) == [get_model_status_pb2.ModelVersionStatus.AVAILABLE]


def test_a_method_that_is_not_there_is_unimplemented(send):
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
