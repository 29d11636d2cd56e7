"""Streams of HTTP/1 that never end a request: memory stays flat and other clients are answered."""

import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess

from .test_rest import PREDICT, check_served

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
    """Sends `first` and then `again` until the server hangs up or the limit is reached."""
    host, port = server.rest_target.split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        try:
            connection.sendall(first)
            for _ in range(ATTACK_BYTES // len(again)):
                if stop.is_set():
                    return
                connection.sendall(again)
        except OSError:
            return  # the server refuses, or stops reading


@pytest.fixture
def under_attack(
    rest_server: ServerProcess,
) -> Iterator[Callable[[bytes, bytes], threading.Thread]]:
    """Starts an attack, which ends after the test."""
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


@pytest.mark.parametrize(
    ("coding", "code"),
    [
        ("xchunked", 400),
        ("identity", 400),
        ("chunked, identity", 400),
        ("chunked;q=1", 400),
        ("gzip, chunked", 501),
    ],
)
def test_a_body_in_an_unknown_coding_is_refused_and_not_read_as_a_request(
    rest_server: ServerProcess, coding: str, code: int
) -> None:
    host, port = rest_server.rest_target.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(POST + f"Transfer-Encoding: {coding}\r\n\r\n".encode() + GET)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {code} ".encode())
    assert b"Connection: close" in head
    assert list(json.loads(body)) == ["error"]
    assert answer.count(b"HTTP/1.1") == 1
    check_served(rest_server)
