"""Bytes to a server and back over a gRPC channel: deadlines, retries, forks."""

import os
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from colcast.client._channel import ChannelOptions, channel_arguments, grpc_target
from colcast.client._errors import ColcastError, ServerError

Metadata = Sequence[tuple[str, str | bytes]]

PREDICT = "/tensorflow.serving.PredictionService/Predict"
GET_MODEL_METADATA = "/tensorflow.serving.PredictionService/GetModelMetadata"


@dataclass(frozen=True, slots=True)
class Call:
    """One method to call with one message."""

    method: str
    request: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """The server's answer.

    Attributes:
        response: the message.
        metadata: initial and trailing response metadata.
        attempts: how often the request was sent.
    """

    response: bytes
    metadata: dict[str, str | bytes] = field(default_factory=dict)
    attempts: int = 1


class Deadline:
    """A point in time that a call and all its retries share."""

    def __init__(self, timeout_seconds: float) -> None:
        self._at = time.monotonic() + timeout_seconds

    def left(self) -> float:
        """Seconds left, never below a microsecond (gRPC then reports DEADLINE_EXCEEDED)."""
        return max(self._at - time.monotonic(), 1e-6)

    def pause_before(self, attempt: int) -> float | None:
        """Seconds to wait before a further attempt; None if the deadline comes first.

        10 ms, doubled each time up to 200 ms, spread by a fifth so that clients do not return
        in step.
        """
        pause = min(0.01 * 2 ** (attempt - 1), 0.2) * random.uniform(0.8, 1.2)
        return pause if pause < self.left() else None


class Transport:
    """A channel that is opened at the first call, in the process that makes the call.

    gRPC's threads do not survive a fork; a child that inherits a transport opens its own
    channel. (If the parent had called before it forked, gRPC itself must be told:
    GRPC_ENABLE_FORK_SUPPORT=1 in the environment.)
    """

    def __init__(self, address: str | Sequence[str], options: ChannelOptions) -> None:
        self.address = address if isinstance(address, str) else ",".join(address)
        self._target = grpc_target(address)
        self._options = options
        self._lock = threading.Lock()
        self._pid = 0
        self._channel: Any = None
        self._methods: dict[str, Any] = {}
        self._closed = False

    def call(self, call: Call, deadline: Deadline, metadata: Metadata = ()) -> Reply:
        """Sends one request and waits for its answer; sends it again while UNAVAILABLE.

        Raises:
            ServerError: any other status, or no server before the deadline.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                response, done = self._method(call.method).with_call(
                    call.request,
                    timeout=deadline.left(),
                    metadata=tuple(metadata),
                    compression=compression(self._options),
                )
            except grpc.RpcError as error:
                pause = pause_after(error, attempt, deadline)
                if pause is None:
                    raise server_error(error, self.address, attempt) from None
                time.sleep(pause)
                continue
            return Reply(response, response_metadata(done), attempt)

    def close(self) -> None:
        """Closes the channel; calls in flight end with CANCELLED."""
        with self._lock:
            self._closed = True
            if self._channel is not None and self._pid == os.getpid():
                self._channel.close()
            self._channel = None
            self._methods = {}

    def _method(self, path: str) -> Any:
        method = self._methods.get(path) if self._pid == os.getpid() else None
        if method is not None:
            return method
        with self._lock:
            if self._closed:
                raise ColcastError("the client is closed")
            if self._channel is None or self._pid != os.getpid():
                self._channel, self._methods = self._open(), {}
                self._pid = os.getpid()
            return self._methods.setdefault(path, self._channel.unary_unary(path))

    def _open(self) -> Any:
        arguments = channel_arguments(self._options)
        if self._options.tls is None:
            return grpc.insecure_channel(self._target, arguments)
        return grpc.secure_channel(self._target, self._options.tls.credentials(), arguments)


def compression(options: ChannelOptions) -> grpc.Compression | None:
    """GRPC's word for the compression asked for."""
    return grpc.Compression.Gzip if options.gzip else None


def pause_after(error: grpc.RpcError, attempt: int, deadline: Deadline) -> float | None:
    """Seconds to wait before trying again; None if this error or the deadline forbids it."""
    if error.code() is not grpc.StatusCode.UNAVAILABLE:
        return None
    return deadline.pause_before(attempt)


def server_error(error: grpc.RpcError, address: str, attempts: int) -> ServerError:
    """A gRPC error as ours."""
    return ServerError(error.code().name, error.details() or "", address=address, attempts=attempts)


def response_metadata(done: Any) -> dict[str, str | bytes]:
    """Initial and trailing metadata of a finished call."""
    pairs = (*(done.initial_metadata() or ()), *(done.trailing_metadata() or ()))
    return dict(pairs)
