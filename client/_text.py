"""TextClient and AsyncTextClient: compute vectors of texts and rank titles for a query."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

import numpy as np
from colcast.client._closing import AsyncClosing, Closing
from colcast.client._errors import InputError
from colcast.client._settings import ChannelOptions, check_timeout
from colcast.client._text_batches import POOLINGS, Batches, all_bytes, strings, text_bytes, vectors
from colcast.client.columns._decode import decode_predict_response
from colcast.client.columns._dtypes import Array
from colcast.client.columns._encode import encode_predict_request
from colcast.client.request._outputs import Ranking
from colcast.client.transport._deadline import Deadline
from colcast.client.transport._transport import PREDICT, AsyncTransport, Call, Transport

Pooling = Literal["mean", "cls", "max"]
Progress = Callable[[int, int], object]
_LONGEST = 512


@dataclass(eq=False)
class TextSettings:
    """The settings of `TextClient` and `AsyncTextClient`.

    Attributes:
        address: "HOST:PORT", several of them, or a DNS name with several servers behind it.
        model: the served model's name.
        version: the model version; None lets the server choose.
        version_label: the label of the version, instead of its number.
        timeout_seconds: deadline of each request.
        batch_tokens: the approximate number of tokens per request. Larger requests make the model
            slightly faster; smaller ones delay other clients less.
        in_flight: the number of requests that one call keeps in flight.
        channel: TLS, message size, keepalive, compression.

    Raises:
        InputError: a setting that cannot work.
    """

    address: str | Sequence[str]
    model: str
    _: KW_ONLY
    version: int | None = None
    version_label: str | None = None
    timeout_seconds: float = 30.0
    batch_tokens: int = 2048
    in_flight: int = 8
    channel: ChannelOptions = field(default_factory=ChannelOptions)

    def __post_init__(self) -> None:
        check_timeout(self.timeout_seconds)
        for name in ("batch_tokens", "in_flight"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)!r}")

    def _plan(
        self, texts: Iterable[str | bytes], pooling: Pooling, max_seq_len: int | None
    ) -> tuple[Batches, Callable[[Sequence[bytes]], Call], str]:
        """The batches of texts, a function that makes a batch's call, and the output's name."""
        if pooling not in POOLINGS:
            raise InputError(f"pooling must be one of {', '.join(POOLINGS)}, got {pooling!r}")
        if max_seq_len is not None and not 2 <= max_seq_len <= _LONGEST:
            raise InputError(f"max_seq_len must be 2 to {_LONGEST}, got {max_seq_len!r}")
        output = POOLINGS[pooling]
        more = {} if max_seq_len is None else {"max_seq_len": np.asarray(max_seq_len, np.int32)}

        def call(batch: Sequence[bytes]) -> Call:
            return self._call("encode", {"texts": strings(batch), **more}, (output,))

        return Batches(texts, self.batch_tokens, max_seq_len or _LONGEST), call, output

    def _rank_call(self, query: str | bytes, titles: Iterable[str | bytes]) -> Call:
        asked = strings([text_bytes(query, "query")])
        return self._call("rank", {"query": asked, "titles": strings(all_bytes(titles, "title"))})

    def _call(
        self, signature: str, columns: Mapping[str, Any], outputs: Sequence[str] = ()
    ) -> Call:
        message = encode_predict_request(
            self.model,
            signature,
            columns,
            version=self.version,
            version_label=self.version_label,
            output_filter=outputs,
        )
        return Call(PREDICT, message)


class TextClient(TextSettings, Closing):
    """Vectors and rankings of texts from a model such as `zoo/text`'s.

    `TextSettings` lists its arguments. Thread-safe.

    Example:
        >>> with TextClient("127.0.0.1:8500", "encoder") as client:
        ...     vectors = client.encode(["Cocoa prices fell.", "Oil rose."])
        ...     vectors.shape
        (2, 384)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._transport = Transport(self.address, self.channel)

    def encode(
        self,
        texts: Iterable[str | bytes],
        *,
        pooling: Pooling = "mean",
        max_seq_len: int | None = None,
        progress: Progress | None = None,
    ) -> Array:
        """Vectors for any number of texts.

        Repeated texts are sent once. Texts of similar length share a request of about
        `batch_tokens`; `in_flight` requests are sent at a time.

        Args:
            texts: str, or bytes in UTF-8. An empty text has a vector too; the model skips bytes
                that are not valid UTF-8.
            pooling: how a text's token vectors are combined: their mean, the vector of [CLS], or
                the maximum.
            max_seq_len: number of tokens to which longer texts are truncated; None for the model's
                default.
            progress: called with the number of answered requests and the total.

        Returns:
            float32 [texts, width], in the order of the texts.

        Raises:
            InputError: an entry is not a text; nothing was sent.
            ServerError: the server refused, or did not answer in time.
        """
        batches, call, output = self._plan(texts, pooling, max_seq_len)

        def ask(batch: Sequence[bytes]) -> Array:
            reply = self._transport.call(call(batch), Deadline(self.timeout_seconds))
            return vectors(reply.response, output, len(batch))

        answers = []
        with ThreadPoolExecutor(min(self.in_flight, len(batches))) as pool:
            for answer in pool.map(ask, batches):  # the first error cancels the batches after it
                answers.append(answer)
                if progress is not None:
                    progress(len(answers), len(batches))
        return batches.joined(answers)

    def rank(self, query: str | bytes, titles: Iterable[str | bytes]) -> Ranking:
        """Scores titles for a query, which is sent and encoded once.

        Args:
            query: str, or bytes in UTF-8.
            titles: N titles, as for `query`.

        Raises:
            InputError: an entry is not a text.
            ServerError: the server refused, or did not answer in time.
        """
        call = self._rank_call(query, titles)
        return _ranking(self._transport.call(call, Deadline(self.timeout_seconds)))


class AsyncTextClient(TextSettings, AsyncClosing):
    """`TextClient` for asyncio: same settings, methods and errors, awaited."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._transport = AsyncTransport(self.address, self.channel)

    async def encode(
        self,
        texts: Iterable[str | bytes],
        *,
        pooling: Pooling = "mean",
        max_seq_len: int | None = None,
        progress: Progress | None = None,
    ) -> Array:
        """Vectors for any number of texts; see `TextClient.encode`."""
        plan = asyncio.to_thread(self._plan, texts, pooling, max_seq_len)
        batches, call, output = await plan
        answers: list[Any] = [None] * len(batches)
        waiting, answered = enumerate(batches), 0

        async def ask() -> None:
            nonlocal answered
            # All tasks share the iterator, so the next free task takes the next batch.
            for at, batch in waiting:
                reply = await self._transport.call(call(batch), Deadline(self.timeout_seconds))
                answers[at] = vectors(reply.response, output, len(batch))
                answered += 1
                if progress is not None:
                    progress(answered, len(batches))

        askers = [asyncio.ensure_future(ask()) for _ in range(min(self.in_flight, len(batches)))]
        try:
            await asyncio.gather(*askers)
        finally:
            for asker in askers:
                asker.cancel()
        return await asyncio.to_thread(batches.joined, answers)

    async def rank(self, query: str | bytes, titles: Iterable[str | bytes]) -> Ranking:
        """Scores titles for a query; see `TextClient.rank`."""
        call = self._rank_call(query, titles)
        return _ranking(await self._transport.call(call, Deadline(self.timeout_seconds)))


def _ranking(reply: Any) -> Ranking:
    decoded = decode_predict_response(reply.response)
    return Ranking(decoded.outputs, decoded.model.version, reply.metadata, "scores")
