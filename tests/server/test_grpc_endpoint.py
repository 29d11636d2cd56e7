"""Where gRPC is answered besides the port, its settings, and the health service."""

import socket
import subprocess

import grpc
import numpy as np
import pytest
from colcast.server import ServerProcess, find_executable
from grpc_health.v1 import health_pb2, health_pb2_grpc

SERVING = health_pb2.HealthCheckResponse.SERVING


def check_health(target, service=""):
    """The health service's answer; raises grpc.RpcError."""
    with grpc.insecure_channel(target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=20).status


def start_error(*flags):
    """The line a server prints that refuses to start."""
    command = [find_executable(), "--host=127.0.0.1", "--port=0", "--model_base_path=x", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.fixture
def socket_path(tmp_path, monkeypatch):
    """A path short enough for a socket, wherever pytest keeps its files."""
    monkeypatch.chdir(tmp_path)
    return "grpc.sock"


def test_the_socket_answers_beside_the_port(
    socket_path, ranker_base_path, connect, ranker_inputs, tmp_path
):
    with ServerProcess("ranker", ranker_base_path, [f"--grpc_socket_path={socket_path}"]) as server:
        for target in (f"unix:{socket_path}", server.target):
            score = connect(target).predict(ranker_inputs)["score"]
            np.testing.assert_array_equal(score, [201, 202, 203])
    assert not (tmp_path / socket_path).exists()


def test_a_socket_left_by_a_crash_is_taken_over(
    socket_path, ranker_base_path, connect, ranker_inputs, tmp_path
):
    flag = f"--grpc_socket_path={socket_path}"
    with ServerProcess("ranker", ranker_base_path, [flag]) as crashed:
        crashed.kill()
    assert (tmp_path / socket_path).is_socket()
    with ServerProcess("ranker", ranker_base_path, [flag]):
        assert connect(f"unix:{socket_path}").predict(ranker_inputs)["score"].shape == (3,)


def test_a_socket_somebody_listens_on_is_left_alone(socket_path):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(socket_path)
        other.listen()
        error = start_error(f"--grpc_socket_path={socket_path}")
        assert f"can not listen on {socket_path}: another server does" in error
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(socket_path)


def test_a_file_at_the_socket_s_path_is_left_alone(socket_path, tmp_path):
    (tmp_path / socket_path).write_text("precious")
    assert "a file that is no socket" in start_error(f"--grpc_socket_path={socket_path}")
    assert (tmp_path / socket_path).read_text() == "precious"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/nowhere/a.sock", "/nowhere/a.sock: No such file or directory"),
        ("x" * 108, "108 bytes; at most 107"),
    ],
)
def test_a_path_no_socket_can_have_is_refused(path, words):
    assert words in start_error(f"--grpc_socket_path={path}")


def test_channel_arguments_reach_grpc(ranker_base_path, connect, ranker_inputs):
    flag = "--grpc_channel_arguments=grpc.max_metadata_size=1024,grpc.keepalive_time_ms=60000"
    with ServerProcess("ranker", ranker_base_path, [flag]) as server:
        stubs = connect(server.target)
        assert stubs.predict(ranker_inputs)["score"].shape == (3,)
        call = stubs.prediction.Predict.future(
            stubs.request(ranker_inputs), timeout=20, metadata=[("trace", "x" * 4096)]
        )
        assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("argument", ["grpc.max_metadata_size", "=3", "grpc.max_metadata_size="])
def test_a_channel_argument_without_name_or_value_is_refused(argument):
    error = start_error(f"--grpc_channel_arguments=a.b=1,{argument}")
    assert f'--grpc_channel_arguments: "{argument}" is not NAME=VALUE' in error


@pytest.mark.parametrize(
    "service", ["", "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"]
)
def test_health_is_answered_for_the_server_and_by_service(server, service):
    assert check_health(server.target, service) == SERVING


def test_health_of_an_unknown_service_is_not_found(server):
    with pytest.raises(grpc.RpcError) as raised:
        check_health(server.target, "tensorflow.serving.NoSuchService")
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_the_health_service_can_be_left_out(ranker_base_path, connect, ranker_inputs):
    flag = "--enable_grpc_healthcheck_service=false"
    with ServerProcess("ranker", ranker_base_path, [flag]) as server:
        assert connect(server.target).predict(ranker_inputs)["score"].shape == (3,)
        with pytest.raises(grpc.RpcError) as raised:
            check_health(server.target)
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
