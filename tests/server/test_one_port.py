"""gRPC's endpoints and settings, and gRPC and REST on one port."""

import contextlib
import http.client
import json
import socket
import ssl
import subprocess

import grpc
import numpy as np
import pytest
from colcast.server import ServerProcess, find_executable
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


def test_a_socket_that_was_left_is_replaced_and_answers_beside_the_port(
    socket_path, ranker_base_path, connect, ranker_inputs
):
    settings = [
        f"--grpc_socket_path={socket_path}",
        "--grpc_channel_arguments=grpc.max_metadata_size=1024,grpc.keepalive_time_ms=60000",
        "--enable_grpc_healthcheck_service=false",
    ]
    with socket.socket(socket.AF_UNIX) as crashed:
        crashed.bind(socket_path)
    with ServerProcess("ranker", ranker_base_path, settings) as server:
        for target in (f"unix:{socket_path}", server.target):
            expect_settings(target, connect, ranker_inputs)


@pytest.mark.parametrize(
    ("path", "words"), [("file", "the file file is not a socket"), ("s" * 108, "at most 107")]
)
def test_a_path_that_cannot_be_a_socket_is_refused(tmp_path, monkeypatch, path, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("text")
    flags = ["--port=0", f"--grpc_socket_path={path}", f"--model_base_path={tmp_path}"]
    ended = subprocess.run(
        [find_executable(), *flags], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 1
    assert "--grpc_socket_path" in ended.stderr
    assert words in ended.stderr
    assert (tmp_path / "file").read_text() == "text"
