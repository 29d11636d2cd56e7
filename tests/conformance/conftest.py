"""The suite tests any server that implements TF Serving's API.

    pytest tests/conformance                              the native server, started here
    pytest tests/conformance --target HOST:PORT           a patched tensorflow_model_server
    pytest tests/conformance --target HOST:PORT --stock   an unpatched one

Your own server must serve the models of models.py, which describes how. REST calls go to
--rest-target; --batching declares that the server joins requests, in batches of any size.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

MODEL = "conformance"
ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    group.addoption("--target", help="host:port of a server that has the suite's models")
    group.addoption(
        "--rest-target", help="its host:port of REST; without, these calls are left out"
    )
    group.addoption("--stock", action="store_true", help="the target is an unpatched TF Serving")
    group.addoption("--batching", action="store_true", help="the target has --enable_batching")


def write_models(directory: Path, *names: str) -> Path:
    """Writes models of models.py in a separate process, since this one already has graphs."""
    command = [sys.executable, "-m", "tests.conformance.models", directory, *names]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    return directory


@dataclass
class Server:
    """The addresses of the server under test."""

    target: str
    rest_target: str


@pytest.fixture(scope="session")
def native(request: pytest.FixtureRequest) -> None:
    """Skips tests that start a native server if --target names another server."""
    if request.config.getoption("--target", default=None):
        pytest.skip("starts a native server; --target is another")


@pytest.fixture(scope="session")
def models(native: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the models that need no exporter."""
    return write_models(
        tmp_path_factory.mktemp("models"),
        MODEL, "half_plus_two", "saved_model_half_plus_three", "tensors",
    )  # fmt: skip


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    given = request.config.getoption("--target", default=None)
    if given:
        yield Server(given, request.config.getoption("--rest-target") or "")
        return
    flags = [
        f"--model_config_file={request.getfixturevalue('models') / 'models.config'}",
        "--allow_version_labels_for_unavailable_models",  # no version exists at the start
        "--rest_api_port=-1",
    ]
    with ServerProcess(flags=flags) as started:
        yield Server(started.target, started.rest_target)


@pytest.fixture(scope="session")
def target(server: Server) -> str:
    return server.target


@pytest.fixture(scope="session")
def rest_target(server: Server) -> str:
    if not server.rest_target:
        pytest.skip("needs --rest-target")
    return server.rest_target


@pytest.fixture(scope="session")
def stub(target: str) -> Iterator[prediction_service_pb2_grpc.PredictionServiceStub]:
    with grpc.insecure_channel(target) as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="session")
def stock(request: pytest.FixtureRequest) -> bool:
    """Whether the server is an unpatched TF Serving, which does not expand."""
    return bool(request.config.getoption("--stock", default=False))


@dataclass
class Answer:
    """The response to a request, or the status of its failure."""

    response: predict_pb2.PredictResponse | None
    code: grpc.StatusCode
    message: str

    def output(self, name: str) -> Any:
        """An output as an array; fails the test with the server's message if the request failed."""
        assert self.response is not None, f"{self.code}: {self.message}"
        return tf.make_ndarray(self.response.outputs[name])

    def refused(self, code: grpc.StatusCode, *culprits: str) -> None:
        """Asserts that the request failed with `code` and a message containing all `culprits`."""
        assert self.response is None, f"answered with {list(self.response.outputs)}"
        assert self.code is code, self.message
        for culprit in culprits:
            assert culprit in self.message


Predict = Callable[..., Answer]


@pytest.fixture(scope="session")
def predict(stub: prediction_service_pb2_grpc.PredictionServiceStub) -> Predict:
    """Sends one request: a signature, then inputs as TensorProtos or as values to convert."""

    def send(
        signature: str,
        inputs: dict[str, Any],
        output_filter: tuple[str, ...] = (),
        model: str = MODEL,
        version: int | None = None,
    ) -> Answer:
        request = predict_pb2.PredictRequest(output_filter=output_filter)
        request.model_spec.name = model
        request.model_spec.signature_name = signature
        if version is not None:
            request.model_spec.version.value = version
        for name, value in inputs.items():
            proto = (
                value if isinstance(value, tensor_pb2.TensorProto) else tf.make_tensor_proto(value)
            )
            request.inputs[name].CopyFrom(proto)
        try:
            response = stub.Predict(request, timeout=120)
        except grpc.RpcError as error:
            return Answer(None, error.code(), error.details() or "")
        return Answer(response, grpc.StatusCode.OK, "")

    return send
