"""The blocking and the asyncio transport: send bytes to a server, with deadline and retries."""

import asyncio
import os
import random
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
import grpc.aio
from colcast.client._errors import ColcastError, ServerError
from colcast.client._settings import USER_HEADER, ChannelOptions, check_timeout
from colcast.client.transport._channel import TLS_HINT, channel_arguments, servers_at, speaks_tls
from colcast.client.transport._servers import Servers

Metadata = Sequence[tuple[str, str | bytes]]
_Client = TypeVar("_Client")
_Result = TypeVar("_Result")

PREDICT = "/tensorflow.serving.PredictionService/Predict"
GET_MODEL_METADATA = "/tensorflow.serving.PredictionService/GetModelMetadata"


_SERVER_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


class Deadline:
    """The time that one call of the client may wait for servers, including all retries.

    Time passes only while the transport waits, not while the process itself encodes candidates or
    runs other asyncio tasks.
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
        """The remaining seconds, at least a microsecond (gRPC then reports DEADLINE_EXCEEDED)."""
        return max(self._at - time.monotonic(), 1e-6)

    def pause_after(self, attempt: int) -> float | None:
        """Seconds to wait before the next attempt; None if there must not be one.

        The pause is 10 ms, doubled each time up to 200 ms, and varied by a fifth so that clients do
        not retry in step. It must end before the deadline.
        """
        pause = min(0.01 * 2 ** min(attempt - 1, 5), 0.2) * random.uniform(0.8, 1.2)
        return pause if pause < self.left() else None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one method with one message.

    Attributes:
        method: the method's path.
        request: the message.
        facts: attributes for tracing spans: name -> value.
        affinity: a hash that identifies the user, made by `_affinity`; empty if there is none.
        server: the address to try first; empty for any.
    """

    method: str
    request: bytes
    facts: dict[str, Any] = field(default_factory=dict)
    affinity: str = ""
    server: str = ""


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


class Connection:
    """The base of the blocking and the asyncio transport: chooses servers, opens channels.

    A process opens channels on its first call, because gRPC's threads do not survive a fork: a
    child that inherits a client opens its own channels. If the parent has made calls before the
    fork, gRPC's fork support must be on; older versions of grpcio need GRPC_ENABLE_FORK_SUPPORT=1
    in the environment for it.
    """

    def __init__(self, address: str | Sequence[str], options: ChannelOptions) -> None:
        self.address = address if isinstance(address, str) else ",".join(address)
        self._given = address
        self._options = options
        self._certificates = None if options.tls is None else options.tls.read()
        self._compression = grpc.Compression.Gzip if options.gzip else None
        self._lock = threading.Lock()
        # The process or event loop that may use the channels.
        self._owner: object = None
        self._servers: Servers | None = None
        self._closed = False
        servers_at(address)

    def home(self, affinity: str) -> str:
        """The server for requests with this affinity; empty if not known yet."""
        servers = self._servers
        return servers.home(affinity) if servers and affinity else ""

    def servers(self, owner: object) -> Servers:
        """The servers, on channels that belong to `owner`.

        Raises:
            ColcastError: the client is closed.
        """
        servers = self._servers
        if servers is not None and self._owner == owner:
            return servers
        with self._lock:
            if self._closed:
                raise ColcastError("the client is closed")
            if self._servers is None or self._owner != owner:
                where, bound = servers_at(self._given), self._options.load_bound
                self._servers = Servers(where, bound, self._open, self._watch)
                self._owner = owner
            return self._servers

    def take_channels(self, owner: object) -> list[Any]:
        """Marks the connection closed; returns its channels if `owner` must close them."""
        with self._lock:
            ours = self._servers if self._owner == owner else None
            self._closed, self._servers, self._owner = True, None, None
            return ours.channels() if ours else []

    def metadata(self, call: Call, metadata: Metadata) -> Metadata:
        """A call's metadata, with its affinity added."""
        return (*metadata, (USER_HEADER, call.affinity)) if call.affinity else tuple(metadata)

    def pause_after(
        self, error: grpc.RpcError, deadline: Deadline, tried: Sequence[str], servers: Servers
    ) -> float | None:
        """Seconds to wait before the next attempt; None if there must not be one.

        Retries calls that fail because a server went away: UNAVAILABLE, or CANCELLED from a server
        that is stopping. A request may thus run twice, which is harmless because all methods only
        read. If an untried server is up, there is no pause.
        """
        if self._closed or error.code() not in _SERVER_GONE:
            return None
        return 0.0 if servers.has_another(tried) else deadline.pause_after(len(tried))

    def error(self, error: grpc.RpcError, tried: Sequence[str]) -> ServerError:
        """Converts the last tried server's error; may probe whether the server wants TLS."""
        details = error.details() or ""
        if (
            error.code() is grpc.StatusCode.UNAVAILABLE
            and self._certificates is None
            and speaks_tls(self.address)
        ):
            details = f"{details}; {TLS_HINT}"
        code, attempts = error.code().name, len(tried)
        return ServerError(code, details, address=self.address, attempts=attempts, server=tried[-1])

    def unreached(self, servers: Servers, attempts: int) -> ServerError:
        """The error for a deadline that ended before any server was reached."""
        return ServerError(*servers.problem(), address=self.address, attempts=attempts)

    def _open(self, address: str) -> Any:
        arguments = channel_arguments(self._options, self._given)
        module = self._module()
        if self._certificates is None:
            return module.insecure_channel(address, arguments)
        credentials = grpc.ssl_channel_credentials(*self._certificates)
        return module.secure_channel(address, credentials, arguments)

    def _module(self) -> Any:
        return grpc

    @staticmethod
    def _watch(channel: Any) -> Callable[[], grpc.ChannelConnectivity]:
        # The blocking API's counterpart of grpc.aio's get_state. The public way, `subscribe`, keeps
        # a thread in gRPC's core for each channel, which does not survive a fork.
        check = channel._channel.check_connectivity_state
        return lambda: _STATES[check(True)]


class Transport(Connection):
    """The blocking transport."""

    def call(self, call: Call, deadline: Deadline, metadata: Metadata = ()) -> Reply:
        """Sends one request and waits for its answer; repeats it if the server went away.

        Raises:
            ServerError: any other status, or no server was reached before the deadline.
        """
        with deadline:
            return self._call(call, deadline, self.metadata(call, metadata))

    def _call(self, call: Call, deadline: Deadline, metadata: Metadata) -> Reply:
        tried: list[str] = []
        while True:
            servers = self.servers(os.getpid())
            server = servers.take(call.affinity, tried, call.server)
            if server is None:
                if deadline.left() < _UNTIL_REACHED:
                    raise self.unreached(servers, len(tried))
                time.sleep(_UNTIL_REACHED)
                continue
            tried.append(server.address)
            try:
                response, done = server.method(call.method).with_call(
                    call.request,
                    timeout=deadline.left(),
                    metadata=metadata,
                    compression=self._compression,
                )
            except grpc.RpcError as error:
                pause = self.pause_after(error, deadline, tried, servers)
                if pause is None:
                    raise self.error(error, tried) from None
            else:
                pairs = (*(done.initial_metadata() or ()), *(done.trailing_metadata() or ()))
                return Reply(response, dict(pairs), len(tried))
            finally:
                servers.give_back(server)
            time.sleep(pause)

    def close(self) -> None:
        """Closes the channels; calls in flight end with CANCELLED."""
        for channel in self.take_channels(os.getpid()):
            channel.close()


class AsyncTransport(Connection):
    """Channels for each event loop that makes calls, opened on its first call."""

    async def call(self, call: Call, deadline: Deadline, metadata: Metadata = ()) -> Reply:
        """Sends one request and awaits its answer; repeats it if the server went away.

        Raises:
            ServerError: any other status, or no server was reached before the deadline.
        """
        # Lets tasks that were started together encode first: encoding blocks the loop, and the
        # deadline would count it as the server's delay.
        await asyncio.sleep(0)
        with deadline:
            return await self._call(call, deadline, self.metadata(call, metadata))

    async def _call(self, call: Call, deadline: Deadline, metadata: Metadata) -> Reply:
        tried: list[str] = []
        while True:
            servers = self.servers(_owner())
            server = servers.take(call.affinity, tried, call.server)
            if server is None:
                if deadline.left() < _UNTIL_REACHED:
                    raise self.unreached(servers, len(tried))
                await asyncio.sleep(_UNTIL_REACHED)
                continue
            tried.append(server.address)
            sent = server.method(call.method)(
                call.request,
                timeout=deadline.left(),
                metadata=metadata,
                compression=self._compression,
            )
            try:
                response = await sent
                pairs = (*(await sent.initial_metadata()), *(await sent.trailing_metadata()))
                return Reply(response, dict(pairs), len(tried))
            except grpc.aio.AioRpcError as error:
                pause = self.pause_after(error, deadline, tried, servers)
                if pause is None:
                    raise (await asyncio.to_thread(self.error, error, tried)) from None
            finally:
                servers.give_back(server)
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Closes the channels; calls in flight end with CANCELLED."""
        for channel in self.take_channels(_owner()):
            await channel.close()

    def _module(self) -> Any:
        return grpc.aio

    @staticmethod
    def _watch(channel: Any) -> Callable[[], grpc.ChannelConnectivity]:
        return lambda: channel.get_state(try_to_connect=True)


async def gathered(limit: int, work: Sequence[Callable[[], Awaitable[_Result]]]) -> list[_Result]:
    """All results in order, of at most `limit` tasks at a time; an error cancels the others."""
    turns = asyncio.Semaphore(limit)

    async def done(one: Callable[[], Awaitable[_Result]]) -> _Result:
        async with turns:
            return await one()

    tasks = [asyncio.ensure_future(done(one)) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


_STATES = {state.value[0]: state for state in grpc.ChannelConnectivity}
_UNTIL_REACHED = 0.005  # seconds between checks whether a server has been reached


def _owner() -> object:
    return os.getpid(), asyncio.get_running_loop()


class Closing:
    """A blocking client with a transport to close."""

    _transport: Transport

    def close(self) -> None:
        """Closes the connections; the client cannot be used again."""
        self._transport.close()

    def __enter__(self: _Client) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClosing:
    """An asyncio client with a transport to close."""

    _transport: AsyncTransport

    async def close(self) -> None:
        """Closes the connections; the client cannot be used again."""
        await self._transport.close()

    async def __aenter__(self: _Client) -> _Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
