"""Large requests go to another server; requests that it does not answer run here."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any, NamedTuple

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from tensorflow_serving.apis import predict_pb2

from .metrics_page import Metrics
from .servers import Stubs

ROWS = 100  # the server forwards requests of at least this many rows


class StandIn:
    """Stands in for the server with an accelerator: records requests, and answers as told."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        self.requests: list[predict_pb2.PredictRequest] = []
        self._answer = answer
        handler = grpc.unary_unary_rpc_method_handler(
            self._predict,
            request_deserializer=predict_pb2.PredictRequest.FromString,
            response_serializer=lambda answer: (
                answer if isinstance(answer, bytes) else answer.SerializeToString()
            ),
        )
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers(
            [
                grpc.method_handlers_generic_handler(
                    "tensorflow.serving.PredictionService", {"Predict": handler}
                )
            ]
        )
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def _predict(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.requests.append(request)
        return self._answer(request, context)

    def close(self) -> None:
        self._server.stop(None).wait()


@pytest.fixture
def stand_in() -> Iterator[Callable[..., StandIn]]:
    """A function that starts a stand-in, which is closed after the test."""
    started: list[StandIn] = []

    def start(answer: Callable[..., Any]) -> StandIn:
        started.append(StandIn(answer))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(scope="module")
def offloading(ranker_base_path, monitoring):
    """A function that starts a server which forwards large requests to a port; makes stubs."""
    # The timeout is long because the machine may be busy.
    flags = [*monitoring, f"--offload_rows={ROWS}", "--offload_timeout_ms=60000"]
    with contextlib.ExitStack() as running:

        def start(port: int, *more: str) -> tuple[ServerProcess, Stubs]:
            to = f"--offload_target=127.0.0.1:{port}"
            server = ServerProcess("ranker", ranker_base_path, [*flags, to, *more])
            running.enter_context(server)
            return server, Stubs(server.target)

        yield start


class Pair(NamedTuple):
    """A server and its stand-in, which answers as told."""

    server: ServerProcess
    stubs: Stubs
    answers: list[Callable[..., Any]]  # one per request; the last answers all further ones
    requests: list[predict_pb2.PredictRequest]


@pytest.fixture(scope="module")
def both(offloading) -> Iterator[Pair]:
    answers: list[Callable[..., Any]] = []
    other = StandIn(lambda *call: answers[-1](*call))
    server, stubs = offloading(other.port)
    yield Pair(server, stubs, answers, other.requests)
    other.close()


@pytest.fixture
def pair(both, wait_until) -> Pair:
    """The server and its stand-in, once the server considers it available."""

    def is_asked() -> bool:
        both.stubs.predict(inputs(ROWS))
        return bool(both.requests)

    both.answers.append(lambda *_: predict_pb2.PredictResponse())
    both.requests.clear()
    wait_until(is_asked)
    both.requests.clear()
    return both


def inputs(rows: int) -> dict[str, Any]:
    """A request of one user and `rows` items."""
    return {
        "user": [2.0],
        "user_name": ["ann"],
        "item": np.arange(rows, dtype=np.float32),
        "item_name": ["x"] * rows,
    }


def offloaded(server: ServerProcess, status: str) -> float:
    """The number of forwarded requests that had this outcome."""
    return Metrics(server).value(":colcast:offloaded_requests_total", status=status)


def refuse(code: grpc.StatusCode) -> Callable[..., Any]:
    return lambda _, context: context.abort(code, "not today")


def test_only_large_requests_are_answered_by_the_other_server(pair):
    answer = predict_pb2.PredictResponse()
    answer.outputs["score"].CopyFrom(tf.make_tensor_proto(np.float32([400])))
    pair.answers.append(lambda *_: answer)
    labels = {"model_name": "ranker", "signature_name": "serving_default"}
    labels |= {"API": "Predict", "entrypoint": "GRPC", "status": "OK"}

    def counts() -> list[float]:
        page = Metrics(pair.server)
        sent = [offloaded(pair.server, status) for status in ("answered", "failed")]
        return [*sent, page.value(":colcast:requests_total", **labels)]

    before = counts()
    small = pair.stubs.predict(inputs(ROWS - 1))["score"]
    large = pair.stubs.predict(inputs(ROWS))["score"]
    assert small.tolist() == [200 + i for i in range(ROWS - 1)]
    assert large.tolist() == [400]
    assert len(pair.requests) == 1
    assert np.subtract(counts(), before).tolist() == [1, 0, 2]


def test_the_request_is_forwarded_unchanged(pair):
    answer = predict_pb2.PredictResponse()
    answer.model_spec.name = "of the other server"
    pair.answers.append(lambda *_: answer)
    sent = pair.stubs.request(inputs(ROWS), output_filter=["score"])
    for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
        call = pair.stubs.prediction.Predict(sent, timeout=120, compression=compression)
        assert call == answer
    assert pair.requests == [sent] * 2


def unreadable(*_: Any) -> bytes:
    return b"\x0a\x04\x12\x02\x0a\x09"


@pytest.mark.parametrize(
    "answer",
    [refuse(grpc.StatusCode.INTERNAL), refuse(grpc.StatusCode.NOT_FOUND), unreadable],
    ids=["INTERNAL", "NOT_FOUND", "unreadable"],
)
def test_requests_that_the_other_server_refuses_run_here(pair, wait_until, answer):
    before = offloaded(pair.server, "failed")
    pair.answers.append(answer)
    score = pair.stubs.predict(inputs(ROWS))["score"]
    assert score.tolist() == [200 + i for i in range(ROWS)]
    assert len(pair.requests) == 1
    assert offloaded(pair.server, "failed") == before + 1
    if answer is unreadable:
        wait_until(lambda: "malformed PredictResponse" in pair.server.log())


def test_a_server_that_ends_does_not_wait_for_the_other_one(offloading, stand_in, wait_until):
    release = threading.Event()
    other = stand_in(lambda *_: (release.wait(300), predict_pb2.PredictResponse())[1])
    server, stubs = offloading(other.port, "--drain_timeout_seconds=1")
    try:
        call = stubs.prediction.Predict.future(stubs.request(inputs(ROWS)), timeout=300)
        wait_until(lambda: other.requests)
        assert server.stop() == 0
        assert call.code() == grpc.StatusCode.UNAVAILABLE
        assert "gRPC: cut off unfinished calls" in server.log()
    finally:
        release.set()


def test_a_hanging_server_takes_half_of_the_deadline_or_its_own_timeout(
    offloading, stand_in, wait_until
):
    """OffloadCircuitTest covers when a server that hangs gets no more calls."""
    release = threading.Event()
    other = stand_in(lambda *_: (release.wait(300), predict_pb2.PredictResponse())[1])
    try:
        for flags, timeout in ([], 6), (["--offload_timeout_ms=50"], 120):
            server, stubs = offloading(other.port, *flags)
            response = stubs.prediction.Predict(stubs.request(inputs(ROWS)), timeout=timeout)
            assert response.outputs["score"].tensor_shape.dim[0].size == ROWS
            assert offloaded(server, "failed") == 1
        wait_until(lambda: "does not answer" in server.log())
        assert other.requests
    finally:
        release.set()


def test_offload_cycles_do_not_forward_endlessly(
    ranker_base_path, monitoring, connect, wait_until, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # paths of sockets must be short
    to_b = ["--grpc_socket_path=a", "--offload_target=unix:b", *monitoring]
    to_a = ["--grpc_socket_path=b", "--offload_target=unix:a", *monitoring]
    with (
        ServerProcess("ranker", ranker_base_path, to_b) as first,
        ServerProcess("ranker", ranker_base_path, to_a) as second,
    ):
        for _ in range(3):
            assert len(connect(first.target).predict(inputs(ROWS))["score"]) == ROWS
        assert offloaded(first, "answered") == 3
        assert offloaded(second, "answered") == 0
        (tmp_path / "b").unlink()
        (tmp_path / "b").symlink_to("a")
        os.kill(second.pid, signal.SIGKILL)
        asked = connect(first.target)

        def finds_out() -> bool:
            assert len(asked.predict(inputs(ROWS))["score"]) == ROWS
            return "--offload_target: unix:b is this server itself" in first.log()

        wait_until(finds_out)


def test_wrong_requests_get_this_servers_error(pair):
    pair.answers.append(refuse(grpc.StatusCode.INVALID_ARGUMENT))
    stubs = pair.stubs
    wrong = inputs(ROWS) | {"user": np.zeros(7, np.float32)}
    with pytest.raises(grpc.RpcError) as error:
        stubs.predict(wrong)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert '"user" has 7' in error.value.details()
    unknown = stubs.request(inputs(ROWS), name="nobody")
    with pytest.raises(grpc.RpcError) as error:
        stubs.prediction.Predict(unknown, timeout=120)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    assert len(pair.requests) == 1  # the other request names no model of this server
