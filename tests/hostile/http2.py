"""Sends and reads HTTP/2 frame by frame, which client libraries cannot; names are the RFCs'."""

import socket
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY = range(8)
WINDOW_UPDATE, CONTINUATION = 8, 9
ACK, END_STREAM, END_HEADERS, PADDED, WITH_PRIORITY = 1, 1, 4, 8, 32
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4
CANCEL = struct.pack(">I", 8)
PREDICT = "/tensorflow.serving.PredictionService/Predict"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame with its header of nine bytes."""
    length = struct.pack(">I", len(payload))[1:]
    return length + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def integer(value: int, prefix_bits: int) -> bytes:
    """An HPACK integer that begins in the low bits of its first byte."""
    most = (1 << prefix_bits) - 1
    if value < most:
        return bytes([value])
    octets, value = bytearray([most]), value - most
    while value >= 128:
        octets.append(value % 128 | 128)
        value //= 128
    return bytes([*octets, value])


def literal(name: str, value: str) -> bytes:
    """An HPACK header without indexing."""
    octets = b""
    for text in (name, value):
        octets += integer(len(text), 7) + text.encode()
    return b"\0" + octets


def request_headers(path: str = PREDICT, **more: str) -> bytes:
    """The headers of a gRPC call; names in `more` have _ in place of -."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "server",
        "te": "trailers",
        "content-type": "application/grpc",
    } | {name.replace("_", "-"): value for name, value in more.items()}
    return b"".join(literal(name, value) for name, value in headers.items())


def grpc_message(message: bytes, *, compressed: bool = False) -> bytes:
    """A message as gRPC puts it into DATA frames."""
    return bytes([compressed]) + struct.pack(">I", len(message)) + message


def read_to_end_of_stream(connection: socket.socket) -> None:
    """Reads frames until one ends a stream; raises OSError if none does in time."""
    with connection.makefile("rb") as frames:
        while header := frames.read(9):
            frames.read(int.from_bytes(header[:3]))
            if header[3] == HEADERS and header[4] & END_STREAM:
                return
    raise ConnectionError("the connection ended before the stream")


def settings_of(connection: socket.socket) -> dict[int, int]:
    """The settings in the server's first frame: number -> value."""
    with connection.makefile("rb") as frames:
        header = frames.read(9)
        assert header[3] == SETTINGS
        return dict(struct.iter_unpack(">HI", frames.read(int.from_bytes(header[:3]))))


def connect(
    target: str, window: int = 65535, timeout: float = 60, receive_buffer: int | None = None
) -> socket.socket:
    """Connects, and sends the preface and the flow-control window for each answer.

    receive_buffer: the size of the socket's receive buffer in bytes; None for the system's default.
    """
    host, port = target.rsplit(":", 1)
    connection = socket.socket()
    connection.settimeout(timeout)
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.connect((host, int(port)))
    setting = struct.pack(">HI", INITIAL_WINDOW_SIZE, window)
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0, setting))
    return connection


def send_until_closed(connection: socket.socket, blocks: Iterator[bytes]) -> int:
    """Sends blocks until the server stops reading; returns how many were sent."""
    sent = 0
    try:
        for block in blocks:
            connection.sendall(block)
            sent += 1
    except OSError:
        pass
    return sent


def is_closed_by_peer(connection: socket.socket, timeout: float = 30) -> bool:
    """Whether the server closes the connection in time; discards what it sends until then."""
    give_up = time.monotonic() + timeout
    try:
        while time.monotonic() < give_up:
            connection.settimeout(max(0.01, give_up - time.monotonic()))
            if not connection.recv(1 << 16):
                return True
    except TimeoutError:
        return False
    except OSError:
        return True
    return False


class Frame(NamedTuple):
    """A frame from the server."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    def error(self) -> int:
        """The error code of a RST_STREAM or GOAWAY."""
        return int.from_bytes(self.payload[4:8] if self.kind == GOAWAY else self.payload[:4])


def frames_of(connection: socket.socket) -> Iterator[Frame]:
    """The received frames, until the connection ends."""
    with connection.makefile("rb") as octets:
        try:
            while len(header := octets.read(9)) == 9:
                payload = octets.read(int.from_bytes(header[:3]))
                yield Frame(header[3], header[4], int.from_bytes(header[5:]), payload)
        except ConnectionError:
            return
