"""Attacks on memory, time or descriptors fail, and other clients are answered meanwhile."""

import itertools
import os
import resource
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
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
SETTINGS = http2.frame(http2.SETTINGS, 0, 0)


def address_of(target: str) -> tuple[str, int]:
    host, _, port = target.rpartition(":")
    return host, int(port)


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


def open_files(server: ServerProcess) -> int:
    return len(os.listdir(f"/proc/{server.pid}/fd"))


BEGUN = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.request_headers())


@pytest.mark.parametrize(
    "said", [b"P", b"PRI", http2.PREFACE[:5], http2.PREFACE + SETTINGS + BEGUN]
)
def test_clients_that_hang_up_immediately_leave_nothing_behind(nothing, said):
    before = open_files(nothing)
    for _ in range(100):
        with socket.create_connection(address_of(nothing.target)) as connection:
            connection.sendall(said)
    wait_until(lambda: open_files(nothing) <= before)


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


DEFAULT_CALLS = 16 * (os.cpu_count() or 1) + 100


@pytest.mark.parametrize(
    ("flags", "least", "most"),
    [([], 100, DEFAULT_CALLS), (["=7"], 7, 7), (["=0"], 100, DEFAULT_CALLS)],
    ids=["default", "flag", "none would serve nobody"],
)
def test_a_connection_may_have_so_many_calls_in_flight(
    tmp_path: Path, flags: list[str], least: int, most: int
) -> None:
    argument = "--grpc_channel_arguments=grpc.max_concurrent_streams"
    with (
        serving_nothing(tmp_path, *(argument + flag for flag in flags)) as server,
        http2.connect(server.target) as connection,
    ):
        allowed = http2.settings_of(connection)[http2.MAX_CONCURRENT_STREAMS]
    assert least <= allowed <= most


HEALTH = "/grpc.health.v1.Health/Check"
CHECK = http2.request_headers(HEALTH)
EMPTY = http2.grpc_message(b"")


def begun(stream: int) -> bytes:
    """A call without its message."""
    return http2.frame(http2.HEADERS, http2.END_HEADERS, stream, CHECK)


def made_to_be_reset(stream: int) -> bytes:
    """An erroneous call, which makes the server reset the stream (CVE-2025-8671)."""
    return begun(stream) + http2.frame(http2.WINDOW_UPDATE, 0, stream, bytes(4))


@pytest.fixture(name="nothing", scope="module")
def serve_nothing(tmp_path_factory) -> Iterator[ServerProcess]:
    """A server without models."""
    with serving_nothing(tmp_path_factory.mktemp("nothing")) as process:
        yield process


def answer_to(server: ServerProcess, headers: bytes, after: bytes = b"") -> bytes:
    """The answer to a call: its headers and trailers, encoded by HPACK; empty if there is none."""
    flags = http2.END_HEADERS | (0 if after else http2.END_STREAM)
    with http2.connect(server.target) as connection:
        connection.sendall(http2.frame(http2.HEADERS, flags, 1, headers) + after)
        blocks = b""
        for frame in http2.frames_of(connection):
            blocks += frame.payload if frame.kind == http2.HEADERS else b""
            if frame.kind == http2.HEADERS and frame.flags & http2.END_STREAM:
                return blocks
    return b""


@pytest.mark.parametrize("more", [{"content_type": "application/grpcx"}, {":method": "PUT"}])
def test_requests_that_are_not_grpc_are_refused_with_an_http_status(nothing, more):
    assert len(answer_to(nothing, http2.request_headers(HEALTH, **more))) < 8  # only :status


def test_a_trailer_sets_no_deadline(nothing):
    trailer = http2.literal("grpc-timeout", "0m")
    message = http2.frame(http2.DATA, 0, 1, EMPTY)
    flags = http2.END_HEADERS | http2.END_STREAM
    with_trailer = message + http2.frame(http2.HEADERS, flags, 1, trailer)
    plain = http2.frame(http2.DATA, http2.END_STREAM, 1, EMPTY)
    assert answer_to(nothing, CHECK, with_trailer) == answer_to(nothing, CHECK, plain)


def test_streams_made_to_be_reset_are_cut_off(nothing):
    with http2.connect(nothing.target) as connection:
        blocks = (
            b"".join(made_to_be_reset(stream) for stream in range(first, first + 200, 2))
            for first in itertools.count(1, 200)
        )
        http2.send_until_closed(connection, itertools.islice(blocks, 2000))
        assert http2.is_closed_by_peer(connection)


GET_NOTHING = b"GET /v1/models/m HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    ("is_grpc", "said"),
    [
        pytest.param(False, b"", id="nothing"),
        pytest.param(False, GET_NOTHING[:30], id="half a request"),
        pytest.param(True, http2.PREFACE + SETTINGS, id="settings"),
        pytest.param(True, http2.PREFACE + SETTINGS + BEGUN, id="half a call"),
    ],
)
def test_when_descriptors_run_out_connections_without_a_call_are_closed_and_others_served(
    tmp_path: Path, *, is_grpc: bool, said: bytes
) -> None:
    """A connection is not closed for others in its first second, so others may have to try again.

    CloseIdlestTest covers which connections are closed first.
    """
    with serving_nothing(tmp_path, "--rest_api_port=-1") as server, ExitStack() as idle:
        limit = open_files(server) + 200
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, limit))
        address = address_of(server.target if is_grpc else server.rest_target)
        for _ in range(400):
            with suppress(OSError):
                idle.enter_context(socket.create_connection(address)).sendall(said)

        def is_served_over_rest() -> bool:
            with suppress(OSError), socket.create_connection(address_of(server.rest_target)) as one:
                one.settimeout(60)
                one.sendall(GET_NOTHING)
                return one.recv(4096).startswith(b"HTTP/1.1 404")
            return False

        def is_served_over_grpc() -> bool:
            call = http2.frame(http2.DATA, http2.END_STREAM, 1, EMPTY)
            with suppress(OSError):
                return answer_to(server, CHECK, call) != b""
            return False

        for _ in range(6):
            wait_until(is_served_over_rest)
            wait_until(is_served_over_grpc)
        wait_until(lambda: "run short: closed the" in server.log())


def test_a_stream_that_waits_is_not_held_by_its_own_windows(nothing):
    """Each call allows some window updates and pings, so these are not abuse."""
    update = http2.frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1))
    with http2.connect(nothing.target) as connection:
        connection.sendall(
            b"".join(
                update * 5
                + begun(stream)
                + http2.frame(http2.DATA, http2.END_STREAM, stream, EMPTY)
                for stream in range(1, 2 * 1000, 2)
            )
        )
        ended = (
            each
            for each in http2.frames_of(connection)
            if each.kind == http2.HEADERS and each.flags & http2.END_STREAM
        )
        assert len(list(itertools.islice(ended, 500))) == 500
