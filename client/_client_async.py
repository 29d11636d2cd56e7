"""AsyncRankingClient: the same methods for asyncio."""

from collections.abc import Sequence
from typing import Any, Self

from colcast.client._errors import ServerError
from colcast.client._flow import Flow, Result, Steps
from colcast.client._outputs import Ranking
from colcast.client._schema import ModelSchema
from colcast.client._settings import ClientSettings, Target
from colcast.client._telemetry import call_span
from colcast.client._transport import Deadline, Metadata
from colcast.client._transport_async import AsyncTransport


class AsyncRankingClient(ClientSettings):
    """`RankingClient` for asyncio: same settings, methods and errors, awaited.

    Requests are encoded on the event loop; at 500 candidates and 200 features that takes
    about 2 ms from arrays.

    Example:
        >>> async with AsyncRankingClient("127.0.0.1:8500", "movies") as client:
        ...     ranking = await client.rank(user={"age": 31}, items=[{"movie": 7}])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._flow = Flow(self)
        self._transport = AsyncTransport(self.address, self.channel)

    async def rank(
        self,
        user: Any = None,
        items: Any = (),
        *,
        target: Target | None = None,
        outputs: Sequence[str] = (),
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Ranking:
        """Scores N candidates for one user; see `RankingClient.rank`."""
        steps = self._flow.rank(user, items, target, outputs)
        return await self._run("rank", steps, timeout_seconds, metadata)

    async def predict_examples(
        self,
        examples: Any,
        *,
        target: Target | None = None,
        outputs: Sequence[str] = (),
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Ranking:
        """Scores tf.Examples; see `RankingClient.predict_examples`."""
        steps = self._flow.examples(examples, target, outputs)
        return await self._run("predict_examples", steps, timeout_seconds, metadata)

    async def encode(
        self,
        user: Any = None,
        items: Any = (),
        *,
        examples: Any = None,
        target: Target | None = None,
        outputs: Sequence[str] = (),
    ) -> bytes:
        """The PredictRequest that `rank` (or `predict_examples`) would send, unsent."""
        steps = self._flow.encode(user, items, examples, target, outputs)
        return await self._run("encode", steps)

    async def send(
        self, request: bytes, *, timeout_seconds: float | None = None, metadata: Metadata = ()
    ) -> Ranking:
        """Sends a PredictRequest that `encode` made; errors as for `rank`."""
        return await self._run("send", self._flow.send(request), timeout_seconds, metadata)

    async def schema(self) -> ModelSchema:
        """What the served model wants, asked once a model version."""
        return await self._run("schema", self._flow.schema())

    async def close(self) -> None:
        """Closes the connections. A closed client stays closed."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(
        self,
        name: str,
        steps: Steps[Result],
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Result:
        """Awaits the calls that the steps ask for, one after the other."""
        deadline = Deadline(self.timeout_seconds if timeout_seconds is None else timeout_seconds)
        with call_span(name, self.model, self._transport.address) as span:
            try:
                call = next(steps)
                while True:
                    try:
                        sent = span.sends(call, metadata)
                        reply = await self._transport.call(call, deadline, sent)
                    except ServerError as error:
                        span.refused(error)
                        call = steps.throw(error)
                    else:
                        span.answered(reply)
                        call = steps.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                return result
