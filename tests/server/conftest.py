"""A real server with a small model, and TF Serving's own stubs to talk to it."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

import grpc
import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)

from .. import models
from ..waiting import wait_until


class Stubs:
    """TF Serving's stubs on one channel, and short ways to ask, by default for `model`."""

    def __init__(self, target: str, *, own_connection: bool = False, model: str = "ranker") -> None:
        self.model = model
        # Channels of one target share a connection otherwise.
        options = [("grpc.use_local_subchannel_pool", 1)] if own_connection else []
        self.channel = grpc.insecure_channel(target, options)
        self.prediction = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)

    def request(self, inputs: dict[str, Any], **spec: Any) -> predict_pb2.PredictRequest:
        """A PredictRequest; values are whatever make_tensor_proto takes."""
        request = predict_pb2.PredictRequest()
        request.model_spec.name = spec.pop("name", self.model)
        request.model_spec.signature_name = spec.pop("signature_name", "serving_default")
        version = spec.pop("version", None)
        if version is not None:
            request.model_spec.version.value = version
        label = spec.pop("label", None)
        if label is not None:
            request.model_spec.version_label = label
        request.output_filter.extend(spec.pop("output_filter", ()))
        assert not spec
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        return request

    def predict(self, inputs: dict[str, Any], **spec: Any) -> dict[str, Any]:
        """The outputs as arrays; raises grpc.RpcError."""
        response = self.prediction.Predict(self.request(inputs, **spec), timeout=120)
        return {name: tf.make_ndarray(proto) for name, proto in response.outputs.items()}

    def states(self, name: str = "") -> dict[int, tuple[str, int, str]]:
        """Of each version the state, the error's code and its message."""
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = name or self.model
        response = self.models.GetModelStatus(request, timeout=120)
        return {
            entry.version: (
                get_model_status_pb2.ModelVersionStatus.State.Name(entry.state),
                entry.status.error_code,
                entry.status.error_message,
            )
            for entry in response.model_version_status
        }

    def metadata(self, name: str = "") -> get_model_metadata_pb2.SignatureDefMap:
        """The model's signatures."""
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        request.model_spec.name = name or self.model
        response = self.prediction.GetModelMetadata(request, timeout=120)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(signatures)
        return signatures


def config_flag(file: Path, base_paths: Mapping[str, Path]) -> str:
    """--model_config_file with these models."""
    models = "".join(
        f'config {{ name: "{name}" base_path: "{path}" model_platform: "tensorflow" }}\n'
        for name, path in base_paths.items()
    )
    file.write_text(f"model_config_list {{ {models} }}")
    return f"--model_config_file={file}"


RANKER_INPUTS = {
    "user": [2.0],
    "user_name": ["ann"],
    "item": [1.0, 2.0, 3.0],
    "item_name": ["x", "y", "z"],
}


@pytest.fixture
def ranker_inputs() -> dict[str, Any]:
    """One user, three items."""
    return dict(RANKER_INPUTS)


@pytest.fixture(scope="session")
def ranker_versions() -> Callable[..., None]:
    """Writes a version of the ranker, given its directory and perhaps a `weight`."""
    return partial(models.build, "ranker")


@pytest.fixture(scope="session", name="wait_until")
def wait_until_fixture() -> Callable[..., None]:
    """Waits for a condition: wait_until(condition, timeout_seconds=60)."""
    return wait_until


@pytest.fixture(scope="session")
def ranker_base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base path with the ranker as version 3."""
    base_path = tmp_path_factory.mktemp("ranker")
    models.build("ranker", base_path / "3")
    return base_path


def save_waiting_ranker(directory: Path, pipe: Path, *, fails: bool = False) -> None:
    """A version of the ranker that loads, or fails, once something reads the pipe."""
    os.mkfifo(pipe)
    models.build("ranker", directory, waits=True)
    file = directory / "assets.extra" / "tf_serving_warmup_requests"
    file.parent.mkdir()
    log = prediction_log_pb2.PredictionLog()
    request = log.predict_log.request
    request.model_spec.signature_name = "wait"
    request.inputs["path"].CopyFrom(tf.make_tensor_proto(str(pipe)))
    with tf.io.TFRecordWriter(str(file)) as writer:
        writer.write(log.SerializeToString())
        if fails:
            writer.write(b"not a log")


@pytest.fixture(scope="module")
def shared() -> Iterator[Callable[..., ServerProcess]]:
    """Starts a server of a model with flags; the tests of a module share one of the same."""
    with ExitStack() as running:

        @cache
        def start(name: str, base_path: Path | str, *flags: str) -> ServerProcess:
            return running.enter_context(ServerProcess(name, base_path, flags))

        yield start


@pytest.fixture(scope="session")
def server(ranker_base_path: Path) -> Iterator[ServerProcess]:
    """A server of the ranker."""
    with ServerProcess("ranker", ranker_base_path) as process:
        yield process


@pytest.fixture(scope="session")
def stubs(server: ServerProcess) -> Stubs:
    """Stubs connected to that server."""
    return Stubs(server.target)


@pytest.fixture(scope="session")
def connect() -> Callable[[str], Stubs]:
    """Stubs for a target."""
    return Stubs


@pytest.fixture(scope="session")
def monitoring(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Flags for HTTP on a free port, with the metrics where TF Serving has them."""
    return publishing(tmp_path_factory.mktemp("monitoring"))
