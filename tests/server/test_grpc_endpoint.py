"""Where gRPC is answered besides the port, its settings, and what it runs."""

import socket
import threading
from pathlib import Path

import grpc
import numpy as np
import pytest
from colcast.server import ServerProcess
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)


@pytest.fixture
def socket_path(tmp_path, monkeypatch):
    """A path short enough for a socket, wherever pytest keeps its files."""
    monkeypatch.chdir(tmp_path)
    return "grpc.sock"


def expect_settings(target, connect, ranker_inputs):
    """Those of the flags."""
    stubs = connect(target)
    np.testing.assert_array_equal(stubs.predict(ranker_inputs)["score"], [201, 202, 203])
    call = stubs.prediction.Predict.future(
        stubs.request(ranker_inputs), timeout=120, metadata=[("trace", "x" * 4096)]
    )
    assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    health = health_pb2_grpc.HealthStub(stubs.channel)
    with pytest.raises(grpc.RpcError) as raised:
        health.Check(health_pb2.HealthCheckRequest(), timeout=120)
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
    services = ProtoReflectionDescriptorDatabase(stubs.channel).get_services()
    assert "grpc.health.v1.Health" not in services


def test_a_socket_is_taken_over_without_a_gap_and_answers_beside_the_port(
    socket_path, ranker_base_path, connect, ranker_inputs, tmp_path, wait_until
):
    """First from a server that crashed, then from one that listens.

    New connections succeed at any time; those to the server before stay its own. It drains, so
    that a request on a connection made just before the takeover is answered.
    """
    flag = f"--grpc_socket_path={socket_path}"
    settings = [
        "--grpc_channel_arguments=grpc.max_metadata_size=1024,grpc.keepalive_time_ms=60000",
        "--enable_grpc_healthcheck_service=false",
    ]
    path = tmp_path / socket_path
    answers = []

    def ask_until(done):
        while not done.is_set():
            stubs = connect(f"unix:{socket_path}", own_connection=True)
            answers.append(stubs.predict(ranker_inputs)["score"][0])
            stubs.channel.close()

    with socket.socket(socket.AF_UNIX) as crashed:
        crashed.bind(socket_path)
    assert path.is_socket()
    flags = [flag, "--drain_seconds=1", *settings]
    with ServerProcess("ranker", ranker_base_path, flags) as before:
        for target in (f"unix:{socket_path}", before.target):
            expect_settings(target, connect, ranker_inputs)
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


def test_an_error_about_a_name_of_a_megabyte_fits_the_client_s_headers(stubs, ranker_inputs):
    with pytest.raises(grpc.RpcError) as raised:
        stubs.predict(ranker_inputs, name="n" * (1 << 20))
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    assert raised.value.details().startswith("Servable not found for request: Latest(nnn")
    assert raised.value.details().endswith("n...")


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
