"""Where gRPC is answered besides the port, its settings, and what it runs."""

import socket
import subprocess
import threading
from pathlib import Path

import grpc
import numpy as np
import pytest
from colcast.server import ServerProcess, find_executable
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)


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


def test_a_socket_another_server_listens_on_is_taken_over_without_a_gap(
    socket_path, ranker_base_path, connect, ranker_inputs, tmp_path, wait_until
):
    """New connections succeed at any time; those to the server before stay its own.

    It drains, so that a request on a connection made just before the takeover is answered.
    """
    flag = f"--grpc_socket_path={socket_path}"
    path = tmp_path / socket_path
    answers = []

    def ask_until(done):
        while not done.is_set():
            stubs = connect(f"unix:{socket_path}", own_connection=True)
            answers.append(stubs.predict(ranker_inputs)["score"][0])
            stubs.channel.close()

    with ServerProcess("ranker", ranker_base_path, [flag, "--drain_seconds=1"]) as before:
        old = connect(f"unix:{socket_path}")
        assert old.predict(ranker_inputs)["score"][0] == 201
        first = path.stat().st_ino
        done = threading.Event()
        asking = threading.Thread(target=ask_until, args=(done,))
        asking.start()
        with ServerProcess("ranker", ranker_base_path, [flag]):
            wait_until(lambda: path.stat().st_ino != first)
            assert old.predict(ranker_inputs)["score"][0] == 201
            assert before.stop() == 0
            asked = len(answers)
            wait_until(lambda: len(answers) > asked + 3 or not asking.is_alive())
            done.set()
            asking.join()
            assert len(answers) > asked + 3
        assert not path.exists()
    assert [each.name for each in tmp_path.glob("grpc.sock*")] == []


def test_a_file_at_the_socket_s_path_is_left_alone(socket_path, tmp_path):
    (tmp_path / socket_path).write_text("precious")
    assert "a file that is no socket" in start_error(f"--grpc_socket_path={socket_path}")
    assert (tmp_path / socket_path).read_text() == "precious"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/nowhere/a.sock", "/nowhere/a.sock: No such file or directory"),
        ("x" * 107, "107 bytes; at most 106"),
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
            stubs.request(ranker_inputs), timeout=120, metadata=[("trace", "x" * 4096)]
        )
        assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_an_error_about_a_name_of_a_megabyte_fits_the_client_s_headers(stubs, ranker_inputs):
    with pytest.raises(grpc.RpcError) as raised:
        stubs.predict(ranker_inputs, name="n" * (1 << 20))
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    assert raised.value.details().startswith("Servable not found for request: Latest(nnn")
    assert raised.value.details().endswith("n...")


@pytest.mark.parametrize("argument", ["grpc.max_metadata_size", "=3", "grpc.max_metadata_size="])
def test_a_channel_argument_without_name_or_value_is_refused(argument):
    error = start_error(f"--grpc_channel_arguments=a.b=1,{argument}")
    assert f'--grpc_channel_arguments: "{argument}" is not NAME=VALUE' in error


def test_the_health_service_can_be_left_out(ranker_base_path, connect, ranker_inputs):
    flag = "--enable_grpc_healthcheck_service=false"
    with ServerProcess("ranker", ranker_base_path, [flag]) as server:
        stubs = connect(server.target)
        assert stubs.predict(ranker_inputs)["score"].shape == (3,)
        health = health_pb2_grpc.HealthStub(stubs.channel)
        with pytest.raises(grpc.RpcError) as raised:
            health.Check(health_pb2.HealthCheckRequest(), timeout=120)
        assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
        services = ProtoReflectionDescriptorDatabase(stubs.channel).get_services()
        assert "grpc.health.v1.Health" not in services


def test_calls_have_no_threads_but_the_workers(server, stubs, ranker_inputs):
    """And one that stands by while all of them are busy."""
    assert stubs.predict(ranker_inputs)["score"].shape == (3,)
    health = health_pb2_grpc.HealthStub(stubs.channel)
    assert next(health.Watch(health_pb2.HealthCheckRequest(), timeout=120)).status
    assert ProtoReflectionDescriptorDatabase(stubs.channel).get_services()
    threads = Path(f"/proc/{server.pid}/task").glob("*/comm")
    names = {thread.read_text().strip() for thread in threads}
    assert {"worker_0", "sockets"} <= names
    assert "event_engine" not in names  # gRPC's


def test_a_server_without_its_rest_port_says_so_and_ends():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        error = start_error(f"--rest_api_port={port}")
    assert f"cannot listen on 127.0.0.1:{port} for HTTP" in error
