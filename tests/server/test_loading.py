"""Requests to a model get UNAVAILABLE while it loads, and then its real status.

Here, models load slowly because their warm-up waits until a test reads a pipe.
"""

import http.client
import json
import subprocess
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess, find_executable
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import model_management_pb2

from ..models.saving import save_version
from .conftest import save_waiting_ranker

# The check of versions before a load would open the pipe in a second process.
FLAGS = ["--rest_api_port=-1", "--load_check=false"]
ENTRY = 'config {{ name: "{0}" base_path: "{1}" model_platform: "tensorflow" }}'


@pytest.fixture(name="slow")
def slow_version(tmp_path):
    """A base path whose version 3 loads once the pipe, which is second, has a reader."""
    save_waiting_ranker(tmp_path / "slow" / "3", tmp_path / "pipe")
    return tmp_path / "slow", tmp_path / "pipe"


def code_of(call):
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code()


def rest_predict(target, name):
    connection = http.client.HTTPConnection(target, timeout=120)
    connection.request("POST", f"/v1/models/{name}:predict", json.dumps({"instances": []}))
    response = connection.getresponse()
    return response.status, response.read().decode()


def tensorflow_servings_check(stubs):
    """Whether the server is ready according to TensorFlow Serving's integration test.

    That test requests a model that does not exist. Once all models have loaded, TensorFlow
    Serving's answer mentions a servable. Other tests look for NOT_FOUND.
    """
    with pytest.raises(grpc.RpcError) as error:
        stubs.predict({}, name="intentionally_missing_model")
    says_servable = "Servable" in error.value.details()
    assert says_servable == (error.value.code() == grpc.StatusCode.NOT_FOUND)
    return says_servable


def reload_in_background(stubs, **base_paths):
    request = model_management_pb2.ReloadConfigRequest()
    for name, path in base_paths.items():
        model = request.config.model_config_list.config.add()
        model.name, model.base_path, model.model_platform = name, str(path), "tensorflow"
    return stubs.models.HandleReloadConfigRequest.future(request, timeout=120)


@pytest.fixture(scope="module")
def other(ranker_base_path):
    """A server of another model."""
    with ServerProcess("ranker", ranker_base_path, [*FLAGS, "--max_num_load_retries=1000"]) as one:
        yield one


def test_a_new_model_is_unavailable_until_it_has_loaded(
    slow, other, ranker_base_path, connect, ranker_inputs, wait_until
):
    base_path, pipe = slow
    stubs = connect(other.target)
    reloaded = reload_in_background(stubs, ranker=ranker_base_path, new=base_path)
    wait_until(lambda: f"loading {base_path}/3" in other.log())
    for spec in ({}, {"version": 3}):
        with pytest.raises(grpc.RpcError) as error:
            stubs.predict(ranker_inputs, name="new", **spec)
        assert error.value.code() == grpc.StatusCode.UNAVAILABLE
        assert "model new is being loaded" in error.value.details()
    assert code_of(lambda: stubs.metadata("new")) == grpc.StatusCode.UNAVAILABLE
    status, body = rest_predict(other.rest_target, "new")
    assert status == 503
    assert "model new is being loaded" in body
    assert stubs.predict(ranker_inputs)["score"][0] == 201
    assert stubs.states("new")[3][0] == "LOADING"
    assert not reloaded.done()
    pipe.read_bytes()
    assert reloaded.result().status.error_code == 0
    assert stubs.predict(ranker_inputs, name="new")["score"][0] == 201


def test_a_server_is_unavailable_until_its_models_serve(
    slow, ranker_base_path, connect, ranker_inputs, tmp_path, monkeypatch, wait_until
):
    base_path, pipe = slow
    monkeypatch.chdir(tmp_path)  # paths of sockets must be short
    entries = [ENTRY.format("quick", ranker_base_path), ENTRY.format("slow", base_path)]
    (tmp_path / "models.config").write_text(f"model_config_list {{ {' '.join(entries)} }}")
    command = [find_executable(), "--host=127.0.0.1", "--port=0", "--grpc_socket_path=s"]
    command += ["--model_config_file=models.config", *FLAGS]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            stubs = connect("unix:s")
            health = health_pb2_grpc.HealthStub(stubs.channel)

            def is_ready():
                check = health_pb2.HealthCheckRequest()
                answer = health.Check(check, wait_for_ready=True, timeout=120)
                return answer.status == health_pb2.HealthCheckResponse.SERVING

            assert not is_ready()
            predict = lambda name: stubs.predict(ranker_inputs, name=name)  # noqa: E731
            codes = set()

            def quick_serves():
                try:
                    return predict("quick")["score"][0] == 201
                except grpc.RpcError as error:
                    codes.add(error.code())
                    return False

            wait_until(quick_serves)
            assert codes <= {grpc.StatusCode.UNAVAILABLE}
            assert code_of(lambda: predict("slow")) == grpc.StatusCode.UNAVAILABLE
            assert not tensorflow_servings_check(stubs)
            assert code_of(lambda: stubs.states("other")) == grpc.StatusCode.UNAVAILABLE
            assert code_of(lambda: stubs.metadata("other")) == grpc.StatusCode.UNAVAILABLE
            assert not is_ready()
            pipe.read_bytes()
            wait_until(is_ready)
            assert tensorflow_servings_check(stubs)
            assert code_of(lambda: stubs.states("other")) == grpc.StatusCode.NOT_FOUND
            assert predict("slow")["score"][0] == 201
        finally:
            process.terminate()
            process.communicate(timeout=120)
    assert process.returncode == 0


MIB = 1 << 20
PAGE = 4096
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


class Large(tf.Module):
    """A model that needs 16 KiB per row, and this many bytes for its weights."""

    def __init__(self, bytes_of_weights: int = 4) -> None:
        super().__init__()
        self.weights = tf.Variable(tf.ones(bytes_of_weights // 4))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def score(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns 4096 x plus the first weight, by a cumulative sum."""
        return {"sum": tf.cumsum(tf.tile(x[:, None], [1, 4096]), axis=1)[:, -1] + self.weights[0]}


def save(directory: Path, bytes_of_weights: int = 4) -> None:
    model = Large(bytes_of_weights)
    save_version(directory, model, model.score)


def page_faults(pid: int) -> int:
    """The number of the process's page faults since it started."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def huge_page_bytes(pid: int) -> int:
    """The bytes of the process's memory that are on huge pages."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("AnonHugePages:"))


def test_the_next_request_reuses_the_memory_of_large_tensors(
    tmp_path: Path, connect, monkeypatch: pytest.MonkeyPatch
):
    """Tests buffers of 16 MiB, and of 64 MiB, which have a separate arena."""
    monkeypatch.setenv("MALLOC_CONF", "thp:never")  # with huge pages, there would be fewer faults
    save(tmp_path / "1")
    requests = 10
    with ServerProcess("large", tmp_path, ["--num_workers=1"]) as server:
        stubs = connect(server.target)

        def predict(rows: int) -> None:
            (total,) = set(stubs.predict({"x": np.ones(rows, np.float32)}, name="large")["sum"])
            assert total == 4097

        for rows in (1024, 4096):
            predict(rows)
            before = page_faults(server.pid)
            for _ in range(requests):
                predict(rows)
            of_one_tensor = rows * 4096 * 4 // PAGE
            assert page_faults(server.pid) - before < requests * of_one_tensor / 4


def test_a_models_tables_lie_on_huge_pages_and_it_gives_them_back_once_it_is_unloaded(
    tmp_path: Path, connect, wait_until, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MALLOC_CONF", "dirty_decay_ms:100")  # instead of 10 s
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")  # oneDNN's allocator keeps freed memory
    save(tmp_path / "1", 128 * MIB)
    flags = ["--file_system_poll_wait_seconds=1"]
    with ServerProcess("large", tmp_path, flags) as server:
        if "[never]" not in HUGE_PAGES.read_text():
            assert huge_page_bytes(server.pid) > 100 * MIB
        meter = ProcessMeter(server.pid)
        both = meter.memory_bytes()
        save(tmp_path / "2")
        stubs = connect(server.target)
        wait_until(lambda: stubs.states("large").get(1, ("",))[0] == "END")
        wait_until(lambda: meter.memory_bytes() < both - 100 * MIB)
