"""HTTP/2 attacks on memory or time fail, and other clients are answered meanwhile."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess
from tensorflow_serving.apis import get_model_status_pb2, predict_pb2

from .. import models
from ..waiting import wait_until
from . import http2
from .conftest import bytes_method, serving_nothing

MANY_MB = 100  # no attack may take more memory
GET_STATUS = "/tensorflow.serving.ModelService/GetModelStatus"


@pytest.fixture(name="target", scope="module")
def serve_zeros(tmp_path_factory) -> Iterator[ServerProcess]:
    base_path = tmp_path_factory.mktemp("zeros")
    models.build("zeros", base_path / "1")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
        with ServerProcess("zeros", base_path) as process:
            yield process


def request_for_zeros(count: int) -> bytes:
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "zeros"
    request.inputs["count"].CopyFrom(tf.make_tensor_proto(count, tf.int64))
    return request.SerializeToString()


@pytest.fixture(name="others_are_answered")
def ask_as_another_client(target) -> Iterator[Callable[[], None]]:
    """Calls as a client that connected before the attack; fails if there is no answer."""
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "zeros"
    with grpc.insecure_channel(target.target) as channel:
        status = bytes_method(channel, GET_STATUS)
        message = request.SerializeToString()
        status(message, timeout=60)
        yield lambda: status(message, timeout=60)


@pytest.fixture(name="memory_stays")
def compare_memory(target) -> Iterator[None]:
    """Checks that the test hardly raises the server's peak memory."""
    meter = ProcessMeter(target.pid)
    before = meter.peak_memory_bytes()
    yield
    assert meter.peak_memory_bytes() - before < MANY_MB << 20


VALUE_WITHOUT_END = b"\0" + http2.integer(1, 7) + b"z" + http2.integer(1 << 30, 7)
NUMBER_WITHOUT_END = b"\0" + http2.integer(1, 7) + b"z" + b"\x7f"
HEADER_BLOCKS = {
    "a value of 1 GiB": (VALUE_WITHOUT_END, b"v" * 16384),
    "a number that does not end": (NUMBER_WITHOUT_END, b"\x80" * 16384),
    "a large header per frame": (b"", http2.literal("abcdefg", "v" * 7000)),
    "a small header per frame": (b"", http2.literal("a", "b")),
    "nothing per frame": (b"", b""),
}


@pytest.mark.parametrize("attack", HEADER_BLOCKS)
def test_an_endless_header_block_is_cut_off(target, memory_stays, others_are_answered, attack):
    first, more = HEADER_BLOCKS[attack]
    with http2.connect(target.target) as connection:
        headers = http2.request_headers() + first
        connection.sendall(http2.frame(http2.HEADERS, 0, 1, headers))
        frames = http2.frame(http2.CONTINUATION, 0, 1, more) * 1000
        http2.send_until_closed(connection, itertools.repeat(frames, 10_000))
        assert http2.is_closed_by_peer(connection)
        others_are_answered()


def reset_calls(count: int) -> Iterator[bytes]:
    """Calls that are reset immediately after they are opened, a thousand at a time."""
    headers = http2.request_headers()
    streams = iter(range(1, 2 * count, 2))
    while batch := list(itertools.islice(streams, 1000)):
        yield b"".join(
            http2.frame(http2.HEADERS, http2.END_HEADERS, stream, headers)
            + http2.frame(http2.RST_STREAM, 0, stream, http2.CANCEL)
            for stream in batch
        )


def test_calls_that_are_reset_immediately_are_cut_off(target, memory_stays, others_are_answered):
    with http2.connect(target.target) as connection:
        http2.send_until_closed(connection, reset_calls(1_000_000))
        assert http2.is_closed_by_peer(connection)
        others_are_answered()


def test_clients_that_hang_up_immediately_leave_nothing_behind(target):
    before = len(os.listdir(f"/proc/{target.pid}/fd"))
    headers = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.request_headers())
    for _ in range(200):
        with http2.connect(target.target) as connection:
            connection.sendall(headers)
    wait_until(lambda: len(os.listdir(f"/proc/{target.pid}/fd")) <= before)


def test_calls_beyond_the_limit_with_unread_refusals_are_cut_off(
    target, memory_stays, others_are_answered
):
    def calls() -> Iterator[bytes]:
        for first in itertools.count(1, 2000):
            yield b"".join(
                http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.request_headers())
                for stream in range(first, first + 2000, 2)
            )

    with http2.connect(target.target, receive_buffer=4096) as connection:
        assert http2.send_until_closed(connection, itertools.islice(calls(), 1000)) < 1000
        others_are_answered()


IDLE_FRAMES = {
    "empty DATA": http2.frame(http2.DATA, 0, 1),
    "WINDOW_UPDATE": http2.frame(http2.WINDOW_UPDATE, 0, 0, b"\0\0\0\1"),
    "PRIORITY": http2.frame(http2.PRIORITY, 0, 1, bytes(5)),
    "unknown": http2.frame(0xBB, 0, 0, bytes(8)),
}


@pytest.mark.parametrize("kind", IDLE_FRAMES)
def test_endless_empty_frames_are_cut_off(target, others_are_answered, kind):
    with http2.connect(target.target) as connection:
        connection.sendall(
            http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.request_headers())
            + IDLE_FRAMES[kind] * 9000
            + http2.frame(http2.DATA, 0, 1, http2.grpc_message(bytes(100))[:50])
            + IDLE_FRAMES[kind] * 9000
        )
        others_are_answered()
        http2.send_until_closed(connection, itertools.repeat(IDLE_FRAMES[kind] * 1000, 1000))
        assert http2.is_closed_by_peer(connection)


def test_pings_as_often_as_they_may_come_keep_a_connection(tmp_path):
    often = "--grpc_channel_arguments=grpc.http2.min_ping_interval_without_data_ms=0"
    ping = http2.frame(http2.PING, 0, 0, bytes(8))
    with (
        serving_nothing(tmp_path, often) as server,
        http2.connect(server.target) as connection,
    ):
        answers = http2.frames_of(connection)
        for _ in range(110):
            connection.sendall(ping * 100)
            acks = (each for each in answers if each.kind == http2.PING and each.flags & 1)
            assert len(list(itertools.islice(acks, 100))) == 100


def test_some_resets_are_fine(target):
    with grpc.insecure_channel(target.target) as channel:
        predict = bytes_method(channel, http2.PREDICT)
        for _ in range(20):
            calls = [predict.future(request_for_zeros(1), timeout=60) for _ in range(50)]
            for call in calls[1:]:
                call.cancel()
            assert calls[0].result()


def test_unread_answers_are_bounded(target, memory_stays, others_are_answered):
    message = http2.grpc_message(request_for_zeros(5 << 20))
    with http2.connect(target.target, window=0) as connection:
        for stream in range(1, 2 * 100, 2):
            headers = http2.request_headers()
            connection.sendall(
                http2.frame(http2.HEADERS, http2.END_HEADERS, stream, headers)
                + http2.frame(http2.DATA, http2.END_STREAM, stream, message)
            )
            others_are_answered()
        with grpc.insecure_channel(target.target) as channel:
            predict = bytes_method(channel, http2.PREDICT)
            call = predict.future(request_for_zeros(5 << 20), timeout=60)
            assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "have not read" in call.details()
            assert "--max_unread_response_bytes" in call.details()
            assert predict(request_for_zeros(100), timeout=60)


@pytest.mark.parametrize(
    ("flags", "least", "most"),
    [
        ([], 100, 16 * (os.cpu_count() or 1) + 100),
        (["--grpc_channel_arguments=grpc.max_concurrent_streams=7"], 7, 7),
        (
            ["--grpc_channel_arguments=grpc.max_concurrent_streams=0"],  # has no effect
            100,
            16 * (os.cpu_count() or 1) + 100,
        ),
    ],
    ids=["default", "flag", "none"],
)
def test_a_connection_may_have_so_many_calls_in_flight(
    tmp_path: Path, flags: list[str], least: int, most: int
) -> None:
    with (
        serving_nothing(tmp_path, *flags) as server,
        http2.connect(server.target) as connection,
    ):
        allowed = http2.settings_of(connection)[http2.MAX_CONCURRENT_STREAMS]
    assert least <= allowed <= most
