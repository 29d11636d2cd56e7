"""gRPC's health service; on SIGTERM it changes first, then requests are refused, then all ends."""

import contextlib
import http.client
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from colcast.server import ServerProcess
from grpc_health.v1 import health_pb2, health_pb2_grpc

from .. import models
from ..hostile import http2
from ..models.impure import Gate
from .inference_client import InferenceClient
from .test_ports import STATUS, socket_to

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICES = ("PredictionService", "ModelService")
CHECKED = ("", *(f"tensorflow.serving.{one}" for one in SERVICES), "inference.GRPCInferenceService")
UNKNOWN = "tensorflow.serving.NoSuchService"


def test_health_turns_first_while_all_is_answered_and_a_second_signal_ends_it(
    ranker_base_path, connect, ranker_inputs, wait_until
):
    flags = ["--drain_seconds=600", "--rest_api_port=-1"]
    with ServerProcess("ranker", ranker_base_path, flags) as server:
        stubs = connect(server.target)
        health = health_pb2_grpc.HealthStub(stubs.channel)
        before = health.Watch(health_pb2.HealthCheckRequest(), timeout=120)
        assert next(before).status == SERVING
        os.kill(server.pid, signal.SIGTERM)
        wait_until(lambda: "stopping" in server.log())
        assert next(before).status == NOT_SERVING
        assert before.is_active()
        during = health.Watch(health_pb2.HealthCheckRequest(), timeout=120)
        assert next(during).status == NOT_SERVING
        assert health.Check(health_pb2.HealthCheckRequest(), timeout=120).status == NOT_SERVING
        assert stubs.predict(ranker_inputs)["score"].tolist() == [201, 202, 203]
        connection = http.client.HTTPConnection(server.rest_target, timeout=120)
        connection.request("GET", "/v1/models/ranker")
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.getheader("Connection") == "close"
        assert json.load(answer)["model_version_status"][0]["state"] == "AVAILABLE"
        client = InferenceClient(server)
        assert client.triton.is_server_live()
        assert not client.triton.is_server_ready()
        assert server.stop() == 128 + signal.SIGTERM
        assert "exiting immediately" in server.log()


@contextlib.contextmanager
def watching(channel: grpc.Channel) -> Iterator[None]:
    """Watches the health of every service; checks that each watch is notified and then ends."""

    def states_of(watch: Any) -> list[int]:
        states = []
        with contextlib.suppress(grpc.RpcError):
            for response in watch:
                states.append(response.status)
        return states

    health = health_pb2_grpc.HealthStub(channel)
    services = [*CHECKED, UNKNOWN]
    watches = [
        health.Watch(health_pb2.HealthCheckRequest(service=service), timeout=60)
        for service in services
    ]
    first = [next(watch).status for watch in watches]
    assert first == [SERVING] * len(CHECKED) + [health_pb2.HealthCheckResponse.SERVICE_UNKNOWN]
    with ThreadPoolExecutor(len(services)) as readers:
        watched = [readers.submit(states_of, watch) for watch in watches]
        yield
        states = [each.result(60) for each in watched]
    assert states == [[NOT_SERVING]] * len(CHECKED) + [[]]
    assert {watch.code() for watch in watches} == {grpc.StatusCode.CANCELLED}


@contextlib.contextmanager
def saying_nothing(server: ServerProcess) -> Iterator[None]:
    """Connects clients that send nothing, or are idle after a request."""
    with socket_to(server), socket_to(server) as idle:
        idle.sendall(f"GET {STATUS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert idle.recv(4096).startswith(b"HTTP/1.1 200 ")
        yield
        assert b"HTTP" not in idle.recv(4096)


def test_requests_during_the_drain_are_all_answered_and_the_exit_is_clean(
    ranker_base_path, connect, ranker_inputs
):
    """Watches and silent clients do not prevent the server from stopping."""
    flags = ["--drain_seconds=4", "--rest_api_port=-1"]  # long enough for a call on a busy machine
    with ServerProcess("ranker", ranker_base_path, flags) as server:
        stubs = connect(server.target, own_connection=True)
        request = stubs.request(ranker_inputs)
        codes = []
        asked_to_stop = threading.Event()
        draining = threading.Event()

        def ask():
            while "stopping" not in server.log():
                codes.append(stubs.prediction.Predict.future(request, timeout=120).code())
                asked_to_stop.set()
            codes.append(stubs.prediction.Predict.future(request, timeout=120).code())
            draining.set()

        with (
            grpc.insecure_channel(server.target) as channel,
            watching(channel),
            saying_nothing(server),
        ):
            thread = threading.Thread(target=ask)
            thread.start()
            assert asked_to_stop.wait(60)
            assert server.stop() == 0
            thread.join()
    assert draining.is_set()
    assert set(codes) == {grpc.StatusCode.OK}


PING = 6
HEAD = (
    b"POST /v1/models/ranker:predict HTTP/1.1\r\nExpect: 100-continue\r\n"
    b"Host: x\r\nContent-Length: 100\r\n\r\n"
)


def test_incomplete_requests_end_with_the_drain(ranker_base_path):
    message = http2.grpc_message(b"x" * 100)
    flags = ["--drain_timeout_seconds=1", "--rest_api_port=-1"]
    with ServerProcess("ranker", ranker_base_path, flags) as server:
        host, port = server.rest_target.split(":")
        with (
            socket.create_connection((host, int(port)), timeout=60) as body,
            http2.connect(server.target) as call,
        ):
            body.sendall(HEAD)
            assert body.recv(100).startswith(b"HTTP/1.1 100")
            call.sendall(
                http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.request_headers())
                + http2.frame(http2.DATA, 0, 1, message[:20])
                + http2.frame(PING, 0, 0, b"has come")
            )
            answer = b""
            while b"has come" not in answer:
                answer += call.recv(1 << 16)
            assert server.stop() == 0
            assert body.recv(100) == b""
        assert "HTTP: cut off unfinished requests" in server.log()
        assert "gRPC: cut off unfinished calls" in server.log()


def test_a_model_that_still_runs_at_the_end_is_named_and_the_status_is_1(
    tmp_path, connect, wait_until
):
    models.build("gated", tmp_path / "gated" / "1")
    gate = Gate(tmp_path / "gate")
    with ServerProcess("gated", tmp_path / "gated", ["--drain_timeout_seconds=0"]) as server:
        stubs = connect(server.target)
        request = stubs.request({"path": str(gate.path), "x": [1.0]}, name="gated")
        call = stubs.prediction.Predict.future(request, timeout=120)
        wait_until(gate.is_reached)
        assert server.stop() == 1
        assert "stopping: a model is still running after --drain_timeout_seconds" in server.log()
        assert call.code() == grpc.StatusCode.UNAVAILABLE


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.target) as channel:
        yield channel


@pytest.fixture
def health(channel):
    return health_pb2_grpc.HealthStub(channel)


def asked(service: str = "") -> health_pb2.HealthCheckRequest:
    return health_pb2.HealthCheckRequest(service=service)


def test_checks_and_watches_are_answered_for_the_server_and_by_service(health):
    for service in CHECKED:
        assert health.Check(asked(service), timeout=120).status == SERVING
        watch = health.Watch(asked(service), timeout=120)
        assert next(watch).status == SERVING
        watch.cancel()
    statuses = health.List(health_pb2.HealthListRequest(), timeout=120).statuses
    listed = {name: each.status for name, each in statuses.items()}
    assert listed == dict.fromkeys(CHECKED, SERVING)


def test_an_unknown_service_is_not_found_and_may_be_watched(health):
    with pytest.raises(grpc.RpcError) as raised:
        health.Check(asked(UNKNOWN), timeout=120)
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    watch = health.Watch(asked(UNKNOWN), timeout=120)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    assert watch.is_active()
    watch.cancel()


@pytest.mark.parametrize(
    ("method", "message"), [("Check", b"\x0a\x05abc"), ("Watch", b"\x0a\x02\xff\xfe")]
)
def test_bytes_that_are_no_message_end_the_call(channel, health, method, message):
    call = channel.unary_stream(f"/grpc.health.v1.Health/{method}")(message, timeout=120)
    with pytest.raises(grpc.RpcError) as raised:
        next(call)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "malformed" in raised.value.details()
    assert health.Check(asked(), timeout=120).status == SERVING
