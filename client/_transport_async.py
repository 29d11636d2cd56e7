"""The same transport for asyncio."""

import asyncio
import os
from typing import Any

import grpc
import grpc.aio
from colcast.client._transport import Call, Connection, Deadline, Metadata, Reply


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
                    raise self.error(error, attempt) from None
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
