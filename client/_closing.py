"""Base classes of the clients: `close`, and use in a `with` block."""

from typing import TypeVar

from colcast.client.transport._transport import AsyncTransport, Transport

_Client = TypeVar("_Client")


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
