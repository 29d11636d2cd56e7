"""TextClient and AsyncTextClient: compute vectors of texts and rank titles for a query.

Texts are checked, sent once each, and batched by length.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from colcast.client._errors import DecodeError, InputError
from colcast.client._settings import ChannelOptions, check_timeout
from colcast.client.columns._decode import decode_predict_response
from colcast.client.columns._dtypes import STRING, Array
from colcast.client.columns._encode import Tensor, encode_predict_request
from colcast.client.columns._values import object_array
from colcast.client.request._outputs import Ranking
from colcast.client.transport._transport import (
    PREDICT,
    AsyncClosing,
    AsyncTransport,
    Call,
    Closing,
    Deadline,
    Transport,
    gathered,
)

Pooling = Literal["mean", "cls", "max"]
Progress = Callable[[int, int], object]
_LONGEST = 512
_BYTES_PER_TOKEN = 4  # a rough value for English
_MARKS = 2  # [CLS] and [SEP], which are added to every text
_POOLINGS = {"mean": "embeddings", "cls": "embeddings/cls", "max": "embeddings/max"}


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
    ) -> "tuple[_Batches, Callable[[Sequence[bytes]], Call], str]":
        """The batches of texts, a function that makes a batch's call, and the output's name."""
        if pooling not in _POOLINGS:
            raise InputError(f"pooling must be one of {', '.join(_POOLINGS)}, got {pooling!r}")
        if max_seq_len is not None and not 2 <= max_seq_len <= _LONGEST:
            raise InputError(f"max_seq_len must be 2 to {_LONGEST}, got {max_seq_len!r}")
        output = _POOLINGS[pooling]
        more = {} if max_seq_len is None else {"max_seq_len": np.asarray(max_seq_len, np.int32)}

        def call(batch: Sequence[bytes]) -> Call:
            return self._call(
                "encode", {"texts": Tensor(STRING, object_array(batch)), **more}, (output,)
            )

        return _Batches(texts, self.batch_tokens, max_seq_len or _LONGEST), call, output

    def _rank_call(self, query: str | bytes, titles: Iterable[str | bytes]) -> Call:
        asked = {"query": [_text_bytes(query, "query")], "titles": _all_bytes(titles, "title")}
        columns = {name: Tensor(STRING, object_array(texts)) for name, texts in asked.items()}
        return self._call("rank", columns)

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
            return _vectors(reply.response, output, len(batch))

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
        answered = 0

        async def ask(batch: Sequence[bytes]) -> Array:
            nonlocal answered
            reply = await self._transport.call(call(batch), Deadline(self.timeout_seconds))
            answered += 1
            if progress is not None:
                progress(answered, len(batches))
            return _vectors(reply.response, output, len(batch))

        answers = await gathered(self.in_flight, [partial(ask, batch) for batch in batches])
        return await asyncio.to_thread(batches.joined, answers)

    async def rank(self, query: str | bytes, titles: Iterable[str | bytes]) -> Ranking:
        """Scores titles for a query; see `TextClient.rank`."""
        call = self._rank_call(query, titles)
        return _ranking(await self._transport.call(call, Deadline(self.timeout_seconds)))


def _ranking(reply: Any) -> Ranking:
    decoded = decode_predict_response(reply.response)
    return Ranking(decoded.outputs, decoded.model.version, reply.metadata, "scores")


def _vectors(response: bytes, output: str, texts: int) -> Array:
    """The response's vectors; raises DecodeError unless there is one for each of `texts` texts."""
    found = decode_predict_response(response).outputs
    if output not in found or len(found[output]) != texts:
        shape = found[output].shape if output in found else "nothing"
        raise DecodeError(f"{output}: expected {texts} rows, the server answered {shape}")
    return found[output]


class _Batches:
    """The distinct texts of a call, in batches of similar length.

    Attributes:
        count: the number of texts given.
    """

    def __init__(self, texts: Iterable[str | bytes], tokens: int, longest: int) -> None:
        """Checks and orders the texts.

        Args:
            texts: the texts to encode.
            tokens: the estimated token budget of a batch; a longer text forms its own batch.
            longest: the maximum number of tokens counted for a text.

        Raises:
            InputError: an entry is not a text.
        """
        given = _all_bytes(texts, "text")
        numbers = {text: number for number, text in enumerate(dict.fromkeys(given))}
        self.count = len(given)
        self._different = list(numbers)
        self._numbers = np.array([numbers[text] for text in given], np.int64)
        self._rows = _divided([len(text) for text in numbers], tokens, longest)

    def __iter__(self) -> Any:
        """The texts of each batch; a single empty batch if there are no texts."""
        for rows in self._rows:
            yield [self._different[row] for row in rows]

    def __len__(self) -> int:
        return len(self._rows)

    def joined(self, answers: Sequence[Array]) -> Array:
        """Combines the batches' answers: one row per given text, in the given order."""
        order = np.concatenate(self._rows)
        values = np.empty((len(order), *answers[0].shape[1:]), answers[0].dtype)
        values[order] = np.concatenate(answers)
        return values[self._numbers]


def _text_bytes(text: Any, name: str) -> bytes:
    """A text in UTF-8; raises an InputError that calls it `name` if it is not text."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise InputError(f"{name}: expected str or UTF-8 bytes, got {text!r}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: {error}") from None


def _all_bytes(texts: Any, name: str) -> list[bytes]:
    """Texts in UTF-8; raises an InputError with `name` and the row if one is not text."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise InputError(f"{name}s must be a list of texts, got {texts!r}")
    return [_text_bytes(text, f"{name} {row}") for row, text in enumerate(texts)]


def _divided(sizes: Sequence[int], tokens: int, longest: int) -> list[Array]:
    """Splits rows, sorted by size, into batches within the token budget after padding."""
    order = np.argsort(np.array(sizes, np.int64), kind="stable")
    batches, begin = [], 0
    for end, row in enumerate(order):
        estimate = min(sizes[row] // _BYTES_PER_TOKEN + 1 + _MARKS, longest)
        if end > begin and estimate * (end + 1 - begin) > tokens:
            batches.append(order[begin:end])
            begin = end
    return [*batches, order[begin:]]
