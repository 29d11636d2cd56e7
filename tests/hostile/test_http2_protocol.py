"""Errors of RFC 9113 and RFC 7541 are detected, and are of the required kind.

Each case names its section of an RFC, and is sent after a preface and empty SETTINGS. nghttp2 finds
these errors, and has its own tests of the others of each kind. The server has no model.
"""

import itertools
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from colcast.server import ServerProcess

from . import http2
from .conftest import serving_nothing
from .http2 import frame, literal

NO_METHOD = "/test.Service/Method"  # its answer has only trailers
PROTOCOL, FLOW_CONTROL, STREAM_CLOSED, FRAME_SIZE = 1, 3, 5, 6
REFUSED_STREAM, COMPRESSION = 7, 9
EMPTY = b"\0\0\0\0\0"  # an empty gRPC message

HEADERS = http2.request_headers(NO_METHOD)
BEGUN = frame(http2.HEADERS, http2.END_HEADERS, 1, HEADERS)
WHOLE = frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1, HEADERS)
LAST = (1 << 31) - 1


def settings(*pairs: tuple[int, int]) -> bytes:
    return frame(http2.SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def call(block: bytes, stream: int = 1) -> bytes:
    return frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, stream, block)


def number(value: int) -> bytes:
    return struct.pack(">I", value)


def without(name: str) -> bytes:
    headers = {":method": "POST", ":scheme": "http", ":path": NO_METHOD}
    headers["content-type"] = "application/grpc"
    return b"".join(literal(*each) for each in headers.items() if each[0] != name)


# Errors of the whole connection: GOAWAY's code -> section -> the frames sent. Those of section 6.3
# and 6.9 that concern a stream may be treated so (5.4.2).
CONNECTION_ERRORS = {
    PROTOCOL: {
        "4.3 another frame in a header block": frame(http2.HEADERS, 0, 1, HEADERS)
        + frame(http2.PING, 0, 0, bytes(8)),
        "5.1 DATA of an idle stream": frame(http2.DATA, 0, 1),
        "5.1.1 an even stream": call(HEADERS, 2),
        "6.1 DATA of stream 0": frame(http2.DATA, 0, 0),
        "6.1 more padding than DATA": BEGUN + frame(http2.DATA, http2.PADDED, 1, b"\5ab"),
        "6.5.2 frames of less than 16 KiB": settings((5, 16383)),
        "6.6 PUSH_PROMISE of a client": BEGUN
        + frame(http2.PUSH_PROMISE, 4, 1, number(2) + HEADERS),
        "6.9 WINDOW_UPDATE of a stream by nothing": BEGUN
        + frame(http2.WINDOW_UPDATE, 0, 1, number(0)),
    },
    FRAME_SIZE: {
        "4.1 a longer frame than allowed": frame(http2.DATA, 0, 1, bytes(16385)),
        "6.5 SETTINGS of 5 bytes": frame(http2.SETTINGS, 0, 0, bytes(5)),
    },
    FLOW_CONTROL: {
        "6.5.2 a window of 2 GiB": settings((4, 1 << 31)),
        "6.9.1 a window beyond 2 GiB": frame(http2.WINDOW_UPDATE, 0, 0, number((1 << 31) - 1)) * 2,
    },
    COMPRESSION: {
        "4.3 half a header block": call(b"\x00\x05abc"),
        "7541 2.3.3 an index that nothing has": call(HEADERS + b"\xfe"),
        "7541 5.2 the code of the end": call(HEADERS + b"\x00\x84\xff\xff\xff\xfc\x01a"),
        "7541 6.3 a larger table than allowed": call(b"\x3f\xff\xff\x7f" + HEADERS),
    },
}

# Errors of one stream: RST_STREAM's code -> section -> the frames sent. The connection stays open.
STREAM_ERRORS = {
    PROTOCOL: {
        "8.1 trailers that are not the end": BEGUN + BEGUN,
        "8.1.1 less than content-length": frame(
            http2.HEADERS, 4, 1, HEADERS + literal("content-length", "6")
        )
        + frame(http2.DATA, http2.END_STREAM, 1, EMPTY),
        "8.2.1 upper case": call(HEADERS + literal("X-Name", "a")),
        "8.2.2 connection": call(HEADERS + literal("connection", "keep-alive")),
        "8.3 a pseudo-header behind others": call(literal("x", "y") + HEADERS),
        "8.3.1 no method": call(without(":method")),
        "8.3.1 no path": call(without(":path")),
        "8.3.1 two methods": call(literal(":method", "POST") + HEADERS),
    },
    FLOW_CONTROL: {
        "6.9.1 a stream's window beyond 2 GiB": BEGUN
        + frame(http2.WINDOW_UPDATE, 0, 1, number((1 << 31) - 1)) * 2,
    },
}

# Not errors: whether stream 1 is answered -> section -> the frames sent.
FINE = {
    True: {
        "4.3 a header block in pieces": frame(http2.HEADERS, http2.END_STREAM, 1, HEADERS[:7])
        + frame(http2.CONTINUATION, 0, 1, HEADERS[7:30])
        + frame(http2.CONTINUATION, 0, 1)
        + frame(http2.CONTINUATION, http2.END_HEADERS, 1, HEADERS[30:]),
        "5.5 an unknown frame": frame(0x16, 0xFF, 0, b"whatever") + WHOLE,
        "6.1 padding": frame(
            http2.HEADERS, http2.END_HEADERS | http2.PADDED, 1, b"\2" + HEADERS + b"\0\0"
        )
        + frame(http2.DATA, http2.END_STREAM | http2.PADDED, 1, b"\3" + EMPTY + bytes(3)),
        "6.3 PRIORITY of an idle stream": frame(http2.PRIORITY, 0, 7, bytes(5)) + WHOLE,
        "6.5.2 an unknown setting": settings((0xFF, 1)) + WHOLE,
        "8.1 trailers": BEGUN + call(literal("x-a", "b")),
        "7541 4.2 a smaller table": call(b"\x20" + HEADERS),
    },
    False: {
        "4.1 reserved bits and unknown flags": frame(http2.PING, 0xFE, 1 << 31, bytes(8)),
    },
}


def rows(cases: dict[Any, dict[str, bytes]]) -> list[Any]:
    return [
        pytest.param(sent, expected, id=section)
        for expected, sections in cases.items()
        for section, sent in sections.items()
    ]


@pytest.fixture(name="server", scope="module")
def serve_nothing(tmp_path_factory) -> Iterator[ServerProcess]:
    with serving_nothing(tmp_path_factory.mktemp("nothing")) as process:
        yield process


def said(connection: socket.socket) -> list[http2.Frame]:
    """The server's frames, until the last possible stream ends."""
    frames = []
    for each in http2.frames_of(connection):
        frames.append(each)
        if each.stream == LAST:
            break
    return frames


def errors(frames: list[http2.Frame], kind: int) -> list[int]:
    return [each.error() for each in frames if each.kind == kind]


def ask(server: ServerProcess, sent: bytes) -> list[http2.Frame]:
    with http2.connect(server.target) as connection:
        connection.sendall(sent + call(HEADERS, LAST))
        return said(connection)


@pytest.mark.parametrize(("sent", "code"), rows(CONNECTION_ERRORS))
def test_the_connection_ends(server, sent, code):
    with http2.connect(server.target) as connection:
        connection.sendall(sent)
        assert errors(list(http2.frames_of(connection)), http2.GOAWAY) == [code]


@pytest.mark.parametrize(("sent", "code"), rows(STREAM_ERRORS))
def test_the_stream_ends(server, sent, code):
    frames = ask(server, sent)
    assert errors(frames, http2.GOAWAY) == []
    assert errors(frames, http2.RST_STREAM) == [code]
    assert frames[-1].kind == http2.HEADERS


@pytest.mark.parametrize(("sent", "is_answered"), rows(FINE))
def test_allowed_frames(server, sent, is_answered):
    frames = ask(server, sent)
    assert errors(frames, http2.GOAWAY) == []
    answers = [each.stream for each in frames if each.kind == http2.HEADERS]
    assert answers == ([1, LAST] if is_answered else [LAST])


@pytest.mark.parametrize(
    "preface", [b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"]
)
def test_other_protocols_are_cut_off(server, preface):
    host, port = server.target.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 60) as connection:
        connection.sendall(preface + bytes(40))
        assert http2.is_closed_by_peer(connection)


def test_the_first_frame_is_settings(server):
    host, port = server.target.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 60) as connection:
        connection.sendall(http2.PREFACE + frame(http2.PING, 0, 0, bytes(8)))
        assert errors(list(http2.frames_of(connection)), http2.GOAWAY) == [PROTOCOL]


# Frames on a stream that the client has already half-closed.
@pytest.mark.parametrize("late", [frame(http2.DATA, 0, 1, EMPTY), BEGUN], ids=["DATA", "HEADERS"])
def test_nothing_follows_the_end_of_a_stream(server, late):
    frames = ask(server, WHOLE + late)
    ended = errors(frames, http2.GOAWAY) + errors(frames, http2.RST_STREAM)
    assert ended
    assert set(ended) <= {STREAM_CLOSED, PROTOCOL}


def test_calls_beyond_the_limit_are_refused(server):
    calls = b"".join(
        frame(http2.HEADERS, http2.END_HEADERS, stream, http2.request_headers())
        for stream in range(1, 2 * 1000, 2)
    )
    frames = ask(server, calls)
    assert set(errors(frames, http2.RST_STREAM) + errors(frames, http2.GOAWAY)) <= {
        REFUSED_STREAM,
        PROTOCOL,
    }
    assert errors(frames, http2.RST_STREAM)


# RFC 9113 requires an error here, but the client may have sent the frame before a reset.
def test_a_stream_below_the_last_one_is_not_opened(server):
    frames = ask(server, call(HEADERS, 5) + call(HEADERS, 3))
    assert [each.stream for each in frames if each.kind == http2.HEADERS] == [5, LAST]


def test_an_answer_waits_for_its_window(server):
    health = http2.request_headers("/grpc.health.v1.Health/Check")
    sent = frame(http2.HEADERS, 4, 1, health) + frame(http2.DATA, http2.END_STREAM, 1, EMPTY)
    with http2.connect(server.target, window=0) as connection:
        connection.sendall(sent + frame(http2.PING, 0, 0, bytes(8)))
        frames = http2.frames_of(connection)
        before = list(itertools.takewhile(lambda each: each.kind != http2.PING, frames))
        assert http2.DATA not in [each.kind for each in before]
        connection.sendall(frame(http2.WINDOW_UPDATE, 0, 1, number(100)))
        assert any(each.kind == http2.DATA for each in frames)
