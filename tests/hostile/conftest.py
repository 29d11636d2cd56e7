"""A real server, and a client that sends it arbitrary bytes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess
from tensorflow_serving.apis import predict_pb2

from .. import models

PREDICT = "/tensorflow.serving.PredictionService/Predict"


def serving_nothing(folder: Path, *flags: str) -> ServerProcess:
    """A server without models; use it as a context manager."""
    config = folder / "config.txt"
    config.write_text("model_config_list {}")
    return ServerProcess(flags=[f"--model_config_file={config}", *flags])


def bytes_method(channel: grpc.Channel, path: str) -> grpc.UnaryUnaryMultiCallable:
    """A method, "/package.Service/Method", that sends and returns bytes."""
    return channel.unary_unary(path, request_serializer=None, response_deserializer=None)


class RawClient:
    """Sends arbitrary bytes as a Predict call's message."""

    def __init__(self, server: ServerProcess) -> None:
        self._channel = grpc.insecure_channel(server.target)
        self._predict = bytes_method(self._channel, PREDICT)

    def send(self, message: bytes) -> predict_pb2.PredictResponse:
        """Sends a message; raises grpc.RpcError if it is refused."""
        return predict_pb2.PredictResponse.FromString(self._predict(message, timeout=60))

    def error_of(self, message: bytes) -> tuple[str, str]:
        """The error that the server answers with, as (code, message)."""
        with pytest.raises(grpc.RpcError) as raised:
            self.send(message)
        return raised.value.code().name, raised.value.details()

    def code_of(self, message: bytes) -> str:
        """The code that the server answers with, OK included."""
        return self._predict.future(message, timeout=60).code().name

    def close(self) -> None:
        self._channel.close()


def make_good_request() -> predict_pb2.PredictRequest:
    """A request of three rows that sends the age once."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "target"
    for name, values in {
        "age": tf.constant([30], tf.int64),
        "pair": tf.constant([[1, 2], [3, 4], [5, 6]], tf.float32),
        "title": tf.constant(["x", "y", "z"]),
        "seen": tf.constant([True, False, True]),
    }.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
    return request


@pytest.fixture
def good_request() -> predict_pb2.PredictRequest:
    """A request that the server answers; the test may change it."""
    return make_good_request()


@pytest.fixture(scope="session")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base path of the model "target"."""
    path = tmp_path_factory.mktemp("target")
    models.build("every_family", path / "1")
    return path


@pytest.fixture(scope="session")
def server(base_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("target", base_path) as process:
        raw = RawClient(process)
        raw.send(make_good_request().SerializeToString())
        raw.close()
        meter = ProcessMeter(process.pid)
        before = meter.peak_memory_bytes()
        yield process
        # The peak covers all requests of all tests.
        assert meter.peak_memory_bytes() - before < 1 << 28


@pytest.fixture(scope="session")
def rest_server(base_path: Path) -> Iterator[ServerProcess]:
    """A server that has REST and a low limit on the size of a request.

    Its allocator returns freed memory immediately, so the process's memory is what it uses.
    """
    flags = ["--rest_api_port=-1", f"--max_request_bytes={4 << 20}"]
    with ExitStack() as running:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("MALLOC_CONF", "dirty_decay_ms:0")
            process = running.enter_context(ServerProcess("target", base_path, flags))
        yield process


@pytest.fixture(scope="session")
def client(server: ServerProcess) -> Iterator[RawClient]:
    raw = RawClient(server)
    yield raw
    raw.close()


@pytest.fixture
def expect_refused(client: RawClient) -> Callable[..., None]:
    """Checks that a message is refused with this code and words, and the next one served."""

    def check(message: bytes, code: str, *words: str) -> None:
        got_code, details = client.error_of(message)
        assert got_code == code, details
        assert all(word in details for word in words), details
        answer = client.send(make_good_request().SerializeToString())
        assert list(answer.outputs["score"].float_val) == [34.0, 37.0, 42.0]

    return check
