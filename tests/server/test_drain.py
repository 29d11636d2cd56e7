"""SIGTERM: health first, then no new requests, then the end; and a second one."""

import http.client
import json
import os
import signal
import socket
import threading

import grpc
import pytest
from colcast.server import ServerProcess
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ..hostile import http2

NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def draining(ranker_base_path, wait_until):
    """A server that has been asked to stop and takes its time."""
    flags = ["--drain_seconds=600", "--rest_api_port=-1"]
    with ServerProcess("ranker", ranker_base_path, flags) as server:
        os.kill(server.pid, signal.SIGTERM)
        wait_until(lambda: "stopping" in server.log())
        yield server
        server.kill()


def test_health_turns_first_while_grpc_still_answers(draining, connect, ranker_inputs):
    stubs = connect(draining.target)
    health = health_pb2_grpc.HealthStub(stubs.channel)
    assert health.Check(health_pb2.HealthCheckRequest(), timeout=120).status == NOT_SERVING
    assert stubs.predict(ranker_inputs)["score"].tolist() == [201, 202, 203]


def test_http_answers_and_asks_to_close(draining):
    connection = http.client.HTTPConnection(draining.rest_target, timeout=120)
    connection.request("GET", "/v1/models/ranker")
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.getheader("Connection") == "close"
    assert json.load(answer)["model_version_status"][0]["state"] == "AVAILABLE"


def test_a_second_signal_ends_the_server_at_once(draining):
    assert draining.stop() == 128 + signal.SIGTERM
    assert "ending at once" in draining.log()


def test_requests_during_the_drain_are_all_answered_and_the_exit_is_clean(
    ranker_base_path, connect, ranker_inputs
):
    with ServerProcess("ranker", ranker_base_path, ["--drain_seconds=1"]) as server:
        stubs = connect(server.target)
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

        thread = threading.Thread(target=ask)
        thread.start()
        assert asked_to_stop.wait(60)
        assert server.stop() == 0
        thread.join()
    assert draining.is_set()
    assert set(codes) == {grpc.StatusCode.OK}


PING = 6
HEAD = b"POST /v1/models/ranker:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"


def test_a_body_that_never_comes_ends_with_the_drain_and_is_named(ranker_base_path):
    flags = ["--drain_timeout_seconds=1", "--rest_api_port=-1"]
    with ServerProcess("ranker", ranker_base_path, flags) as server:
        host, port = server.rest_target.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(HEAD.replace(b"Host", b"Expect: 100-continue\r\nHost"))
            assert client.recv(100).startswith(b"HTTP/1.1 100")
            assert server.stop() == 0
            assert client.recv(100) == b""
        assert "POST /v1/models/ranker:predict, of whose body 0 bytes have come" in server.log()


def test_a_grpc_message_that_never_comes_ends_with_the_drain(ranker_base_path):
    message = http2.grpc_message(b"x" * 100)
    with ServerProcess("ranker", ranker_base_path, ["--drain_timeout_seconds=1"]) as server:
        with http2.connect(server.target) as client:
            client.sendall(
                http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.request_headers())
                + http2.frame(http2.DATA, 0, 1, message[:20])
                + http2.frame(PING, 0, 0, b"has come")
            )
            answer = b""
            while b"has come" not in answer:
                answer += client.recv(1 << 16)
            assert server.stop() == 0
        assert "gRPC: cut calls that had not ended" in server.log()


def test_a_body_that_comes_during_the_drain_is_answered(
    ranker_base_path, ranker_inputs, wait_until
):
    body = json.dumps({"inputs": ranker_inputs}).encode()
    head = HEAD.replace(b"100", str(len(body)).encode())
    with ServerProcess("ranker", ranker_base_path, ["--rest_api_port=-1"]) as server:
        host, port = server.rest_target.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(head.replace(b"Host", b"Expect: 100-continue\r\nHost"))
            client.recv(100)
            ended = []
            stopper = threading.Thread(target=lambda: ended.append(server.stop()))
            stopper.start()
            wait_until(lambda: "stopping" in server.log())
            client.sendall(body)
            response = http.client.HTTPResponse(client)
            response.begin()
            assert json.load(response)["outputs"]["score"] == [201, 202, 203]
        stopper.join()
        assert ended == [0]
