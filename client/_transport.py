"""Bytes to a server and back, blocking and asyncio: channels, deadlines, retries, forks."""

import asyncio
import os
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from colcast.client._channel import channel_arguments, grpc_target
from colcast.client._errors import ColcastError, ServerError
from colcast.client._settings import ChannelOptions, check_timeout
from colcast.client._tls_hint import HINT, speaks_tls

Metadata = Sequence[tuple[str, str | bytes]]

PREDICT = "/tensorflow.serving.PredictionService/Predict"
GET_MODEL_METADATA = "/tensorflow.serving.PredictionService/GetModelMetadata"


_SERVER_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


@dataclass(frozen=True, slots=True)
class Call:
    """One method to call with one message.

    Attributes:
        method: the method's path.
        request: the message.
        facts: what is worth knowing about it, for spans: name -> value.
    """

    method: str
    request: bytes
    facts: dict[str, Any] = field(default_factory=dict)


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
    """The time that one call of the client may wait for servers, with all its retries.

    It runs while the transport waits. What the process itself needs in between, to encode ten
    thousand candidates or, with asyncio, to run other tasks, is not the servers' delay.
    """

    def __init__(self, timeout_seconds: float) -> None:
        """Raises InputError unless the timeout is above 0."""
        check_timeout(timeout_seconds)
        self._left = timeout_seconds
        self._at = 0.0

    def __enter__(self) -> None:
        self._at = time.monotonic() + self._left

    def __exit__(self, *_: object) -> None:
        self._left = self.left()

    def left(self) -> float:
        """Seconds left, never below a microsecond (gRPC then reports DEADLINE_EXCEEDED)."""
        return max(self._at - time.monotonic(), 1e-6)

    def pause_after(self, error: grpc.RpcError, attempt: int) -> float | None:
        """Seconds to wait before the next attempt; None if there must be none.

        Tried again is what a server did not answer because it went away: UNAVAILABLE, and
        CANCELLED, with which it ends what it no longer waits for. Both methods that are called
        only read, so a request may have run twice. The pause is 10 ms, doubled each time up to
        200 ms, spread by a fifth so that clients do not return in step; it must end before the
        deadline. Round robin then takes the next server.
        """
        if error.code() not in _SERVER_GONE:
            return None
        pause = min(0.01 * 2 ** (attempt - 1), 0.2) * random.uniform(0.8, 1.2)
        return pause if pause < self.left() else None


class Connection:
    """What the blocking and the asyncio transport share: when a channel must be opened.

    A channel is opened at the first call, by the process that makes it: gRPC's threads do not
    survive a fork, so a child that inherits a client opens a channel of its own. Where the
    parent has made calls before, gRPC's fork support must be on: in older versions of grpcio
    that takes GRPC_ENABLE_FORK_SUPPORT=1 in the environment.
    """

    def __init__(self, address: str | Sequence[str], options: ChannelOptions) -> None:
        self.address = address if isinstance(address, str) else ",".join(address)
        self._target = grpc_target(address)
        self._options = options
        self._certificates = None if options.tls is None else options.tls.read()
        self._compression = grpc.Compression.Gzip if options.gzip else None
        self._lock = threading.Lock()
        self._owner: object = None  # who may use the channel: a process, or a loop in it
        self._channel: Any = None
        self._methods: dict[str, Any] = {}
        self._closed = False

    def method(self, path: str, owner: object) -> Any:
        """The callable for a method on a channel that belongs to `owner`.

        Raises:
            ColcastError: the client is closed.
        """
        if self._owner == owner and path in self._methods:
            return self._methods[path]
        with self._lock:
            if self._closed:
                raise ColcastError("the client is closed")
            if self._owner != owner:
                self._channel, self._methods, self._owner = self._open(), {}, owner
            return self._methods.setdefault(path, self._channel.unary_unary(path))

    def take_channel(self, owner: object) -> Any:
        """Marks the connection closed and hands out the channel to close, if it is the owner's."""
        with self._lock:
            channel = self._channel if self._owner == owner else None
            self._closed, self._channel, self._methods, self._owner = True, None, {}, None
            return channel

    def pause_after(self, error: grpc.RpcError, deadline: Deadline, attempt: int) -> float | None:
        """Seconds to wait before the next attempt; None if there must be none."""
        return None if self._closed else deadline.pause_after(error, attempt)

    def error(self, error: grpc.RpcError, attempts: int) -> ServerError:
        """A gRPC error as a ServerError; may ask the server whether it wants TLS."""
        details = error.details() or ""
        if (
            error.code() is grpc.StatusCode.UNAVAILABLE
            and self._certificates is None
            and speaks_tls(self.address)
        ):
            details = f"{details}; {HINT}"
        return ServerError(error.code().name, details, address=self.address, attempts=attempts)

    def _open(self) -> Any:
        arguments = channel_arguments(self._options, self.address)
        module = self._module()
        if self._certificates is None:
            return module.insecure_channel(self._target, arguments)
        credentials = grpc.ssl_channel_credentials(*self._certificates)
        return module.secure_channel(self._target, credentials, arguments)

    def _module(self) -> Any:
        return grpc


class Transport(Connection):
    """The blocking transport."""

    def call(self, call: Call, deadline: Deadline, metadata: Metadata = ()) -> Reply:
        """Sends one request and waits for its answer; sends it again if the server went away.

        Raises:
            ServerError: any other status, or no server before the deadline.
        """
        with deadline:
            return self._call(call, deadline, metadata)

    def _call(self, call: Call, deadline: Deadline, metadata: Metadata) -> Reply:
        attempt = 0
        while True:
            attempt += 1
            try:
                response, done = self.method(call.method, os.getpid()).with_call(
                    call.request,
                    timeout=deadline.left(),
                    metadata=tuple(metadata),
                    compression=self._compression,
                )
            except grpc.RpcError as error:
                pause = self.pause_after(error, deadline, attempt)
                if pause is None:
                    raise self.error(error, attempt) from None
                time.sleep(pause)
                continue
            pairs = (*(done.initial_metadata() or ()), *(done.trailing_metadata() or ()))
            return Reply(response, dict(pairs), attempt)

    def close(self) -> None:
        """Closes the channel; calls in flight end with CANCELLED."""
        channel = self.take_channel(os.getpid())
        if channel is not None:
            channel.close()


class AsyncTransport(Connection):
    """A channel for each event loop that makes calls, opened at its first."""

    async def call(self, call: Call, deadline: Deadline, metadata: Metadata = ()) -> Reply:
        """Sends one request and awaits its answer; sends it again if the server went away.

        Raises:
            ServerError: any other status, or no server before the deadline.
        """
        # Tasks that were started together encode first, each holding up the loop: a deadline that
        # ran meanwhile would count their work as the server's delay.
        await asyncio.sleep(0)
        with deadline:
            return await self._call(call, deadline, metadata)

    async def _call(self, call: Call, deadline: Deadline, metadata: Metadata) -> Reply:
        attempt = 0
        while True:
            attempt += 1
            sent = self.method(call.method, _owner())(
                call.request,
                timeout=deadline.left(),
                metadata=tuple(metadata),
                compression=self._compression,
            )
            try:
                response = await sent
            except grpc.aio.AioRpcError as error:
                pause = self.pause_after(error, deadline, attempt)
                if pause is None:
                    raise (await asyncio.to_thread(self.error, error, attempt)) from None
                await asyncio.sleep(pause)
                continue
            pairs = (*(await sent.initial_metadata()), *(await sent.trailing_metadata()))
            return Reply(response, dict(pairs), attempt)

    async def close(self) -> None:
        """Closes the channel; calls in flight end with CANCELLED."""
        channel = self.take_channel(_owner())
        if channel is not None:
            await channel.close()

    def _module(self) -> Any:
        return grpc.aio


def _owner() -> object:
    return os.getpid(), asyncio.get_running_loop()
