"""gRPC's endpoints and settings, and gRPC and REST on one port."""

import contextlib
import http.client
import json
import socket
import ssl
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
from tensorflow_serving.apis import prediction_service_pb2_grpc

from .tls import Authority, config_flag

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\4\0\0\0\0\0"
STATUS = "/v1/models/ranker"


def one_port_server(base_path, *flags: str) -> ServerProcess:
    """A server that has gRPC and REST on one port."""
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        port = finder.getsockname()[1]
    ports = [f"--port={port}", f"--rest_api_port={port}"]
    return ServerProcess("ranker", base_path, [*ports, *flags])


@pytest.fixture(scope="module")
def one_port(ranker_base_path):
    with one_port_server(ranker_base_path) as server:
        yield server


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"), "ours")


@pytest.fixture(scope="module")
def one_tls_port(ranker_base_path, tmp_path_factory, authority):
    path = tmp_path_factory.mktemp("config") / "tls.cfg"
    with one_port_server(ranker_base_path, config_flag(path, authority.issue("s"))) as server:
        yield server


def socket_to(server: ServerProcess) -> socket.socket:
    host, _, port = server.target.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def test_both_are_answered_and_score_the_same(one_port, connect, ranker_inputs):
    assert one_port.target == one_port.rest_target
    score = connect(one_port.target).predict(ranker_inputs)["score"]
    connection = http.client.HTTPConnection(one_port.rest_target, timeout=60)
    with contextlib.closing(connection):
        for _ in range(2):
            inputs = {
                name: [v.decode() if isinstance(v, bytes) else v for v in np.ravel(value).tolist()]
                for name, value in ranker_inputs.items()
            }
            connection.request("POST", f"{STATUS}:predict", json.dumps({"inputs": inputs}))
            outputs = json.load(connection.getresponse())["outputs"]
            np.testing.assert_allclose(outputs["score"], score, rtol=1e-6)


@pytest.mark.parametrize(("method", "first"), [("GET", 1), ("PUT", 1), ("PRX", 2), ("PRINT", 3)])
def test_http1_is_known_from_its_first_bytes_however_they_come(one_port, method, first):
    request = f"{method} {STATUS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    with socket_to(one_port) as connection:
        connection.sendall(request[:first])
        connection.sendall(request[first:])
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_http2_is_known_from_its_first_bytes_however_they_come(one_port):
    with socket_to(one_port) as connection:
        for byte in PREFACE + SETTINGS:
            connection.sendall(bytes([byte]))
        header = connection.recv(9, socket.MSG_WAITALL)
    assert header[3:5] == b"\4\0"  # a SETTINGS frame


def test_with_tls_the_handshake_says_which_it_is(one_tls_port, authority, stubs, ranker_inputs):
    credentials = grpc.ssl_channel_credentials(authority.root.read_bytes())
    with grpc.secure_channel(one_tls_port.target, credentials) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        assert stub.Predict(stubs.request(ranker_inputs), timeout=60).outputs["score"]
    for protocols in ([], ["http/1.1"], ["http/1.0"]):
        context = ssl.create_default_context(cafile=authority.root)
        if protocols:
            context.set_alpn_protocols(protocols)
        connection = http.client.HTTPSConnection(
            one_tls_port.rest_target, timeout=60, context=context
        )
        with contextlib.closing(connection):
            connection.request("GET", STATUS)
            assert connection.getresponse().status == 200
    context = ssl.create_default_context(cafile=authority.root)
    context.set_alpn_protocols(["http/1.1", "h2"])
    with context.wrap_socket(socket_to(one_tls_port), server_hostname="localhost") as both:
        assert both.selected_alpn_protocol() == "h2"


def test_plain_http_to_the_tls_port_gets_a_hint(one_tls_port):
    with socket_to(one_tls_port) as connection:
        connection.sendall(f"GET {STATUS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"use https" in answer


@pytest.fixture
def socket_path(tmp_path, monkeypatch):
    """A relative path, because paths of sockets must be short."""
    monkeypatch.chdir(tmp_path)
    return "grpc.sock"


def expect_settings(target, connect, ranker_inputs):
    """Checks that the limits of the flags are in force."""
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
    """Takes a socket over, first from a crashed server, then from one that still listens.

    New connections always succeed; existing ones stay with the old server. That server drains, so
    it answers a request on a connection that was made just before.
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


def test_calls_have_no_threads_besides_the_workers(server, stubs, ranker_inputs):
    """A standby thread may exist, but only while all workers are busy."""
    assert stubs.predict(ranker_inputs)["score"].shape == (3,)
    health = health_pb2_grpc.HealthStub(stubs.channel)
    assert next(health.Watch(health_pb2.HealthCheckRequest(), timeout=120)).status
    assert ProtoReflectionDescriptorDatabase(stubs.channel).get_services()
    threads = Path(f"/proc/{server.pid}/task").glob("*/comm")
    names = {thread.read_text().strip() for thread in threads}
    assert {"worker_0", "sockets"} <= names
    assert "event_engine" not in names  # gRPC's library would start it
