"""AsyncRankingClient: the same methods for asyncio."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Self, TypeVar

from colcast.client._calls import Calls, ClientOptions
from colcast.client._channel import ChannelOptions
from colcast.client._errors import ServerError
from colcast.client._outputs import Ranking
from colcast.client._policies import Dedupe, Policies
from colcast.client._schema import ModelSchema
from colcast.client._targets import Target
from colcast.client._telemetry import call_span
from colcast.client._transport import Call, Metadata, Reply
from colcast.client._transport_async import AsyncTransport

Result = TypeVar("Result")


class AsyncRankingClient:
    """`RankingClient` for asyncio: same settings, methods and errors, awaited.

    Requests are encoded on the event loop; at 500 candidates and 200 features that takes
    about 2 ms from arrays.

    Example:
        >>> async with AsyncRankingClient("127.0.0.1:8500", "movies") as client:
        ...     ranking = await client.rank(user={"age": 31}, items=[{"movie": 7}])
    """

    def __init__(
        self,
        address: str | Sequence[str],
        model: str,
        *,
        target: Target = "auto",
        signature: str | None = None,
        version: int | None = None,
        version_label: str | None = None,
        score_output: str | None = None,
        timeout_seconds: float = 1.0,
        dedupe: Dedupe = "auto",
        policies: Policies | None = None,
        channel: ChannelOptions | None = None,
    ) -> None:
        """Checks the settings; opens no connection. See `RankingClient`."""
        options = ClientOptions(
            target=target,
            signature=signature,
            version=version,
            version_label=version_label,
            score_output=score_output,
            timeout_seconds=timeout_seconds,
            dedupe=dedupe,
            policies=policies or Policies(),
        )
        self._calls = Calls(model, options)
        self._transport = AsyncTransport(address, channel or ChannelOptions())

    async def rank(
        self,
        user: Mapping[str, Any] | None = None,
        items: Any = (),
        *,
        target: Target | None = None,
        outputs: Sequence[str] = (),
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Ranking:
        """Scores N candidates for one user; see `RankingClient.rank`."""
        steps = self._calls.rank(user, items, target, outputs)
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
        steps = self._calls.examples(examples, target, outputs)
        return await self._run("predict_examples", steps, timeout_seconds, metadata)

    async def encode(
        self,
        user: Mapping[str, Any] | None = None,
        items: Any = (),
        *,
        examples: Any = None,
        target: Target | None = None,
        outputs: Sequence[str] = (),
    ) -> bytes:
        """The PredictRequest that `rank` (or `predict_examples`) would send, unsent."""
        steps = self._calls.encode(user, items, examples, target, outputs)
        return (await self._run("encode", steps)).message

    async def send(
        self, request: bytes, *, timeout_seconds: float | None = None, metadata: Metadata = ()
    ) -> Ranking:
        """Sends a PredictRequest that `encode` made; errors as for `rank`."""
        return await self._run("send", self._calls.send(request), timeout_seconds, metadata)

    async def schema(self) -> ModelSchema:
        """What the served model wants, asked once a model version."""
        return await self._run("schema", self._calls.schema())

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
        steps: Generator[Call, Reply, Result],
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Result:
        """Awaits the calls that the steps ask for, one after the other."""
        deadline = self._calls.deadline(timeout_seconds)
        with call_span(name, self._calls.model, self._transport.address) as span:
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
