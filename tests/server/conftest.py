"""A real server with a small model, and TF Serving's own stubs to talk to it."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess
from tensorflow_serving.apis import (
    prediction_log_pb2,
)

from .. import models
from ..models import shops, stages_model
from ..waiting import wait_until
from .servers import Servers, Stubs


def config_flag(file: Path, base_paths: Mapping[str, Path]) -> str:
    """Writes a configuration of these models; returns its --model_config_file flag."""
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
    """A request of one user and three items."""
    return dict(RANKER_INPUTS)


@pytest.fixture(scope="session")
def ranker_versions() -> Callable[..., None]:
    """A function that saves a version of the ranker in a directory, perhaps with a `weight`."""
    return partial(models.build, "ranker")


@pytest.fixture(scope="session", name="wait_until")
def wait_until_fixture() -> Callable[..., None]:
    """The function wait_until(condition, timeout_seconds=60)."""
    return wait_until


@pytest.fixture(scope="session")
def ranker_base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base path that has the ranker as version 3."""
    base_path = tmp_path_factory.mktemp("ranker")
    models.build("ranker", base_path / "3")
    return base_path


def save_waiting_ranker(directory: Path, pipe: Path) -> None:
    """Saves a version of the ranker that loads once the pipe has a reader."""
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


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The servers that all tests share."""
    servers = Servers(tmp_path_factory.mktemp("servers"))
    with servers.running:
        yield servers


@pytest.fixture(scope="session")
def log_folder(servers: Servers) -> Callable[[], Path]:
    """A function that makes a folder in which servers may log requests."""
    numbers = count(1)

    def make() -> Path:
        made = servers.folder / f"logs{next(numbers)}"
        made.mkdir()
        return made

    return make


@pytest.fixture(scope="module")
def serve(servers: Servers) -> Iterator[Callable[..., "Stubs"]]:
    """`Servers.serve`; models are removed after the module's tests."""
    yield servers.serve
    servers.forget()


@pytest.fixture(scope="session")
def choices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `serve_fast` passes as --graph_choices."""
    return tmp_path_factory.mktemp("choices")


@pytest.fixture
def serve_fast(serve: Callable[..., "Stubs"], choices: Path) -> Callable[[Path], "Stubs"]:
    """A function that serves a model with --graph_optimization=fast and the current choices."""
    flags = ["--graph_optimization=fast", f"--graph_choices={choices}"]
    return lambda base_path: serve(base_path, *flags)


@pytest.fixture(scope="session")
def shops_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base path of the exported model of shops and campaigns."""
    return shops.export(tmp_path_factory.mktemp("shops"))


@pytest.fixture(scope="session")
def stages_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base path of the model that has stages."""
    base_path = tmp_path_factory.mktemp("stages")
    stages_model.save(base_path / "1")
    return base_path


@pytest.fixture(scope="session")
def stubs(servers: Servers, ranker_base_path: Path) -> "Stubs":
    """Stubs of the ranker."""
    return servers.serve(ranker_base_path, name="ranker", stays=True)


@pytest.fixture(scope="session")
def server(stubs: "Stubs") -> ServerProcess:
    """The server of the ranker and of other models."""
    return stubs.server


@pytest.fixture(scope="session")
def connect() -> Callable[[str], Stubs]:
    """A function that makes stubs for a target."""
    return Stubs


@pytest.fixture(scope="session")
def monitoring(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Flags for HTTP on a free port, with metrics at TF Serving's usual path."""
    return publishing(tmp_path_factory.mktemp("monitoring"))
