"""SIGTERM: health first, then no new requests, then the end; and a second one."""

import http.client
import json
import os
import signal
import threading

import grpc
import pytest
from colcast.server import ServerProcess
from grpc_health.v1 import health_pb2, health_pb2_grpc

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
    assert health.Check(health_pb2.HealthCheckRequest(), timeout=20).status == NOT_SERVING
    assert stubs.predict(ranker_inputs)["score"].tolist() == [201, 202, 203]


def test_http_answers_and_asks_to_close(draining):
    connection = http.client.HTTPConnection(draining.rest_target, timeout=20)
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
                codes.append(stubs.prediction.Predict.future(request, timeout=20).code())
                asked_to_stop.set()
            codes.append(stubs.prediction.Predict.future(request, timeout=20).code())
            draining.set()

        thread = threading.Thread(target=ask)
        thread.start()
        assert asked_to_stop.wait(60)
        assert server.stop() == 0
        thread.join()
    assert draining.is_set()
    assert set(codes) == {grpc.StatusCode.OK}
