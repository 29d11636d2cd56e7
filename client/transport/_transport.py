"""Bytes to a server and back, blocking and asyncio: deadlines, retries, forks."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from colcast.client._errors import ColcastError, ServerError
from colcast.client._settings import USER_HEADER, ChannelOptions
from colcast.client.transport._channel import TLS_HINT, channel_arguments, servers_at, speaks_tls
from colcast.client.transport._deadline import Deadline
from colcast.client.transport._servers import Servers

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
        affinity: whose request it is, as `_affinity` hashes it; empty if nobody's.
    """

    method: str
    request: bytes
    facts: dict[str, Any] = field(default_factory=dict)
    affinity: str = ""


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
    """Shared by the blocking and the asyncio transport: choosing a server, opening channels.

    Channels are opened at the first call, by the process that makes it: gRPC's threads do not
    survive a fork, so a child that inherits a client opens channels of its own. Where the
    parent has made calls before, gRPC's fork support must be on: in older versions of grpcio
    that takes GRPC_ENABLE_FORK_SUPPORT=1 in the environment.
    """

    def __init__(self, address: str | Sequence[str], options: ChannelOptions) -> None:
        self.address = address if isinstance(address, str) else ",".join(address)
        self._given = address
        self._options = options
        self._certificates = None if options.tls is None else options.tls.read()
        self._compression = grpc.Compression.Gzip if options.gzip else None
        self._lock = threading.Lock()
        self._owner: object = None  # who may use the channels: a process, or a loop in it
        self._servers: Servers | None = None
        self._closed = False
        servers_at(address)

    def home(self, affinity: str) -> str:
        """The server that requests of this affinity go to; empty if that is not known yet."""
        servers = self._servers
        return servers.home(affinity) if servers and affinity else ""

    def servers(self, owner: object) -> Servers:
        """The servers, by channels that belong to `owner`.

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
        """Marks the connection closed and hands out the channels to close, if the owner's."""
        with self._lock:
            ours = self._servers if self._owner == owner else None
            self._closed, self._servers, self._owner = True, None, None
            return ours.channels() if ours else []

    def metadata(self, call: Call, metadata: Metadata) -> Metadata:
        """A call's metadata, with whose it is."""
        return (*metadata, (USER_HEADER, call.affinity)) if call.affinity else tuple(metadata)

    def pause_after(
        self, error: grpc.RpcError, deadline: Deadline, tried: Sequence[str], servers: Servers
    ) -> float | None:
        """Seconds to wait before the next attempt; None if there must be none.

        Retries calls that a server did not answer because it went away: UNAVAILABLE, and CANCELLED,
        with which a stopping server ends calls. All methods that are called only read, so a request
        may have run twice. A server that is up and was not tried is asked at once.
        """
        if self._closed or error.code() not in _SERVER_GONE:
            return None
        return 0.0 if servers.has_another(tried) else deadline.pause_after(len(tried))

    def error(self, error: grpc.RpcError, attempts: int) -> ServerError:
        """A gRPC error as a ServerError; may ask the server whether it wants TLS."""
        details = error.details() or ""
        if (
            error.code() is grpc.StatusCode.UNAVAILABLE
            and self._certificates is None
            and speaks_tls(self.address)
        ):
            details = f"{details}; {TLS_HINT}"
        return ServerError(error.code().name, details, address=self.address, attempts=attempts)

    def unreached(self, servers: Servers, attempts: int) -> ServerError:
        """The error where the deadline ends before there is a server to ask."""
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
        # grpc.aio's get_state, for the blocking API. `subscribe`, the public way, keeps a thread in
        # gRPC's core for each channel, which a fork does not survive.
        check = channel._channel.check_connectivity_state
        return lambda: _STATES[check(True)]


class Transport(Connection):
    """The blocking transport."""

    def call(self, call: Call, deadline: Deadline, metadata: Metadata = ()) -> Reply:
        """Sends one request and waits for its answer; sends it again if the server went away.

        Raises:
            ServerError: any other status, or no server before the deadline.
        """
        with deadline:
            return self._call(call, deadline, self.metadata(call, metadata))

    def _call(self, call: Call, deadline: Deadline, metadata: Metadata) -> Reply:
        tried: list[str] = []
        while True:
            servers = self.servers(os.getpid())
            server = servers.take(call.affinity, tried)
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
                    raise self.error(error, len(tried)) from None
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
    """Channels for each event loop that makes calls, opened at its first."""

    async def call(self, call: Call, deadline: Deadline, metadata: Metadata = ()) -> Reply:
        """Sends one request and awaits its answer; sends it again if the server went away.

        Raises:
            ServerError: any other status, or no server before the deadline.
        """
        # Tasks that were started together encode first, each holding up the loop: a deadline that
        # ran meanwhile would count their work as the server's delay.
        await asyncio.sleep(0)
        with deadline:
            return await self._call(call, deadline, self.metadata(call, metadata))

    async def _call(self, call: Call, deadline: Deadline, metadata: Metadata) -> Reply:
        tried: list[str] = []
        while True:
            servers = self.servers(_owner())
            server = servers.take(call.affinity, tried)
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
                    raise (await asyncio.to_thread(self.error, error, len(tried))) from None
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


# Implementation details follow.

_STATES = {state.value[0]: state for state in grpc.ChannelConnectivity}
_UNTIL_REACHED = 0.005  # seconds between two looks whether a server has been reached


def _owner() -> object:
    return os.getpid(), asyncio.get_running_loop()
