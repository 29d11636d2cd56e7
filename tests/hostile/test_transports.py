"""Abuse over both transports, input that is no call, and endless HTTP/1 streams."""

import contextlib
import itertools
import os
import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess

from ..waiting import wait_until
from . import http2
from .conftest import serving_nothing
from .test_rest import PREDICT, check_served

HEALTH = "/grpc.health.v1.Health/Check"
CHECK = http2.request_headers(HEALTH)
EMPTY = http2.grpc_message(b"")


def begun(stream: int) -> bytes:
    """A call without its message."""
    return http2.frame(http2.HEADERS, http2.END_HEADERS, stream, CHECK)


def made_to_be_reset(stream: int) -> bytes:
    """An erroneous call, which makes the server reset the stream (CVE-2025-8671)."""
    return begun(stream) + http2.frame(http2.WINDOW_UPDATE, 0, stream, bytes(4))


@pytest.fixture(name="server", scope="module")
def serve_one_port(tmp_path_factory) -> Iterator[ServerProcess]:
    """A server that has gRPC and REST on one port."""
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        port = finder.getsockname()[1]
    flags = [f"--port={port}", f"--rest_api_port={port}", "--caller_header=x-caller"]
    with serving_nothing(tmp_path_factory.mktemp("nothing"), *flags) as process:
        yield process


def answer_to(server: ServerProcess, headers: bytes, after: bytes = b"") -> bytes:
    """The answer to a call: its headers and trailers, encoded by HPACK."""
    flags = http2.END_HEADERS | (0 if after else http2.END_STREAM)
    with http2.connect(server.target) as connection:
        connection.sendall(http2.frame(http2.HEADERS, flags, 1, headers) + after)
        blocks = b""
        for frame in http2.frames_of(connection):
            blocks += frame.payload if frame.kind == http2.HEADERS else b""
            if frame.kind == http2.HEADERS and frame.flags & http2.END_STREAM:
                return blocks
    raise AssertionError("no answer")


@pytest.mark.parametrize(
    "more",
    [
        {"grpc_timeout": ""},
        {"grpc_timeout": "-1S"},
        {"grpc_timeout": "123456789S"},
        {"grpc_timeout": "0x1S"},
        {"grpc_timeout": "1s"},
    ],
)
def test_an_invalid_deadline_is_an_error(server, more):
    good = answer_to(server, CHECK, http2.frame(http2.DATA, http2.END_STREAM, 1, EMPTY))
    bad = answer_to(
        server,
        http2.request_headers(HEALTH, **more),
        http2.frame(http2.DATA, http2.END_STREAM, 1, EMPTY),
    )
    assert bad != good
    assert len(bad) > len(good)  # includes a message


@pytest.mark.parametrize(
    "more",
    [
        {"content_type": "application/grpcx"},
        {"content_type": "application/grpc-web"},
        {":method": "PUT"},
    ],
)
def test_requests_that_are_not_grpc_are_refused_with_an_http_status(server, more):
    assert len(answer_to(server, http2.request_headers(HEALTH, **more))) < 8  # only :status


def test_a_trailer_sets_no_deadline(server):
    trailer = http2.literal("grpc-timeout", "0m")
    message = http2.frame(http2.DATA, 0, 1, EMPTY)
    flags = http2.END_HEADERS | http2.END_STREAM
    with_trailer = message + http2.frame(http2.HEADERS, flags, 1, trailer)
    plain = http2.frame(http2.DATA, http2.END_STREAM, 1, EMPTY)
    assert answer_to(server, CHECK, with_trailer) == answer_to(server, CHECK, plain)


def test_streams_made_to_be_reset_are_cut_off(server):
    with http2.connect(server.target) as connection:
        blocks = (
            b"".join(made_to_be_reset(stream) for stream in range(first, first + 200, 2))
            for first in itertools.count(1, 200)
        )
        http2.send_until_closed(connection, itertools.islice(blocks, 2000))
        assert http2.is_closed_by_peer(connection)


def open_files(server: ServerProcess) -> int:
    return len(os.listdir(f"/proc/{server.pid}/fd"))


@pytest.mark.parametrize("said", [b"P", b"PRI", http2.PREFACE[:5]])
def test_a_client_that_sends_too_little_and_hangs_up_leaves_nothing_behind(server, said):
    host, _, port = server.target.rpartition(":")
    before = open_files(server)
    for _ in range(50):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(said)
    wait_until(lambda: open_files(server) <= before, 10)


SETTINGS = http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0)


@pytest.mark.parametrize(
    ("is_grpc", "said"),
    [
        pytest.param(False, b"", id="nothing"),
        pytest.param(False, b"GET /v1/models/m HTTP/1.1\r\nHo", id="half a request"),
        pytest.param(True, SETTINGS, id="settings"),
        pytest.param(
            True, SETTINGS + http2.frame(http2.SETTINGS, http2.ACK, 0) + begun(1), id="half a call"
        ),
    ],
)
def test_when_descriptors_run_out_connections_without_a_call_are_closed_and_others_served(
    tmp_path: Path, *, is_grpc: bool, said: bytes
) -> None:
    with serving_nothing(tmp_path, "--rest_api_port=-1") as server:
        host, _, port = server.rest_target.rpartition(":")
        limit = open_files(server) + 200
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, limit))
        get = b"GET /v1/models/m HTTP/1.1\r\nHost: x\r\n\r\n"
        address = (host, int(server.target.rpartition(":")[2] if is_grpc else port))
        with socket.create_connection((host, int(port)), timeout=60) as settled:
            settled.sendall(get)
            assert settled.recv(4096)
            idle = [socket.create_connection(address) for _ in range(400)]
            for connection in idle:
                with contextlib.suppress(OSError):
                    connection.sendall(said)
            for _ in range(12):
                with socket.create_connection((host, int(port)), timeout=60) as other:
                    other.sendall(get)
                    assert other.recv(4096).startswith(b"HTTP/1.1 404")
                call = http2.frame(http2.DATA, http2.END_STREAM, 1, EMPTY)
                assert answer_to(server, CHECK, call)
            assert open_files(server) < limit
            settled.sendall(get)
            assert settled.recv(4096).startswith(b"HTTP/1.1 404")
            for connection in idle:
                connection.close()
        assert "run short: closed the" in server.log()


def test_a_stream_that_waits_is_not_held_by_its_own_windows(server):
    """Each call allows some window updates and pings, so these are not abuse."""
    update = http2.frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1))
    with http2.connect(server.target) as connection:
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


ATTACK_BYTES = 96 << 20
MEMORY_BYTES = 64 << 20

POST = f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\n".encode()
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
GET = b"GET /v1/models/target HTTP/1.1\r\nHost: x\r\n\r\n"

ATTACKS: dict[str, tuple[bytes, bytes]] = {
    "an extension of a chunk": (CHUNKED + b"2;", b"a" * 1_000_000),
    "an extension of the last chunk": (CHUNKED + b"2\r\n{}\r\n0;", b"a" * 1_000_000),
    "an extension per chunk": (CHUNKED, (b"1;" + b"a" * 60_000 + b"\r\n \r\n") * 16),
    "chunks of one byte": (CHUNKED, b"1\r\n \r\n" * 160_000),
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: y\r\n" * 160_000),
    "one long trailer": (CHUNKED + b"2\r\n{}\r\n0\r\nX: ", b"y" * 1_000_000),
    "header lines": (POST, b"a:\r\n" * 250_000),
    "one long header line": (POST + b"X: ", b"y" * 1_000_000),
    "a long target": (b"GET /", b"y" * 1_000_000),
    "empty lines": (b"", b"\r\n" * 500_000),
    "a body without an end": (POST + b"Content-Length: 4000000000\r\n\r\n", b" " * 1_000_000),
    "requests whose answers nobody reads": (b"", GET * 10_000),
}


def flood(server: ServerProcess, first: bytes, again: bytes, stop: threading.Event) -> None:
    """Sends `first`, then `again` until the server hangs up or enough is sent."""
    host, port = server.rest_target.split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        try:
            connection.sendall(first)
            for _ in range(ATTACK_BYTES // len(again)):
                if stop.is_set():
                    return
                connection.sendall(again)
        except OSError:
            return  # the server refuses, or has stopped reading


@pytest.fixture
def under_attack(
    rest_server: ServerProcess,
) -> Iterator[Callable[[bytes, bytes], threading.Thread]]:
    """A function that starts an attack; it ends with the test."""
    stop = threading.Event()
    attackers: list[threading.Thread] = []

    def start(first: bytes, again: bytes) -> threading.Thread:
        attackers.append(threading.Thread(target=flood, args=(rest_server, first, again, stop)))
        attackers[-1].start()
        return attackers[-1]

    yield start
    stop.set()
    for attacker in attackers:
        attacker.join()


@pytest.mark.parametrize("attack", ATTACKS)
def test_memory_stays_constant_and_others_are_answered(
    rest_server: ServerProcess,
    under_attack: Callable[[bytes, bytes], threading.Thread],
    attack: str,
) -> None:
    check_served(rest_server)
    meter = ProcessMeter(rest_server.pid)
    before = meter.memory_bytes()
    attacker = under_attack(*ATTACKS[attack])
    while attacker.is_alive():
        check_served(rest_server)
        assert meter.memory_bytes() < before + MEMORY_BYTES
    assert meter.memory_bytes() < before + MEMORY_BYTES
    check_served(rest_server)
