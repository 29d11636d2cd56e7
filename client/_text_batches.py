"""Turns texts into requests: checks them, removes duplicates, batches them by length."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from colcast.client._errors import DecodeError, InputError
from colcast.client.columns._decode import decode_predict_response
from colcast.client.columns._dtypes import STRING, Array
from colcast.client.columns._encode import Tensor

_BYTES_PER_TOKEN = 4  # a rough value for English
_MARKS = 2  # [CLS] and [SEP], which are added to every text
POOLINGS = {"mean": "embeddings", "cls": "embeddings/cls", "max": "embeddings/max"}


def vectors(response: bytes, output: str, texts: int) -> Array:
    """The response's vectors; raises DecodeError unless there is one for each of `texts` texts."""
    found = decode_predict_response(response).outputs
    if output not in found or len(found[output]) != texts:
        shape = found[output].shape if output in found else "nothing"
        raise DecodeError(f"{output}: expected {texts} rows, the server answered {shape}")
    return found[output]


class Batches:
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
        given = all_bytes(texts, "text")
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


def strings(texts: Sequence[bytes]) -> Tensor:
    values = np.empty(len(texts), object)
    values[:] = texts
    return Tensor(STRING, values)


def text_bytes(text: Any, name: str) -> bytes:
    """A text in UTF-8; raises an InputError that calls it `name` if it is not text."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise InputError(f"{name}: expected str or UTF-8 bytes, got {text!r}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: {error}") from None


def all_bytes(texts: Any, name: str) -> list[bytes]:
    """Texts in UTF-8; raises an InputError with `name` and the row if one is not text."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise InputError(f"{name}s must be a list of texts, got {texts!r}")
    return [text_bytes(text, f"{name} {row}") for row, text in enumerate(texts)]


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
