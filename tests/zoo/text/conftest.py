"""The published weights, and an encoder made from them."""

import math
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from colcast.zoo.text import encoder, weights
from colcast.zoo.text.weights import MiniLM


@pytest.fixture(scope="session")
def minilm() -> weights.MiniLM:
    return weights.load(encoder.WORK_DIR)


@pytest.fixture(scope="session")
def vocabulary(minilm: weights.MiniLM) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(minilm.vocabulary)}


@pytest.fixture(scope="session")
def base_path() -> Path:
    return encoder.ensure()


@pytest.fixture(scope="session")
def encode(base_path: Path):
    """A function that encodes texts in TensorFlow; returns the outputs as arrays."""
    import tensorflow_text  # noqa: F401  the ops of the graph

    model = tf.saved_model.load(str(base_path / "1"))

    def run(texts, max_seq_len=256):
        outputs = model.signatures["encode"](
            texts=tf.constant(texts, tf.string), max_seq_len=tf.constant(max_seq_len)
        )
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    return run


_erf = np.vectorize(math.erf, otypes=[np.float64])


def words(text: str) -> list[str]:
    """Splits a text into words in lower case, without accents and control characters."""
    kept = "".join(
        " " if each in "\t\n\r" or unicodedata.category(each) == "Zs" else each
        for each in text
        if each in "\t\n\r" or unicodedata.category(each)[0] != "C"
    )
    plain = "".join(
        each
        for each in unicodedata.normalize("NFD", kept.lower())
        if unicodedata.category(each) != "Mn"
    )
    apart = "".join(f" {each} " if _alone(each) else each for each in plain)
    return apart.split()


def _alone(each: str) -> bool:
    """Whether a character is a separate word: punctuation, an ASCII symbol, or Chinese."""
    symbol = each.isascii() and each.isprintable() and not each.isalnum() and each != " "
    chinese = 0x4E00 <= ord(each) <= 0x9FFF or 0x3400 <= ord(each) <= 0x4DBF
    return symbol or chinese or unicodedata.category(each)[0] == "P"


def tokens(text: str, vocabulary: dict[str, int], max_seq_len: int) -> list[int]:
    """The ids of [CLS], of each word's longest pieces in the vocabulary, and of [SEP]."""
    pieces = [piece for word in words(text) for piece in _pieces(word, vocabulary)]
    return [vocabulary["[CLS]"], *pieces[: max_seq_len - 2], vocabulary["[SEP]"]]


def _pieces(word: str, vocabulary: dict[str, int]) -> list[int]:
    pieces, start = [], 0
    if len(word) > 100:
        return [vocabulary["[UNK]"]]
    while start < len(word):
        before = "##" if start else ""
        for end in range(len(word), start, -1):
            if before + word[start:end] in vocabulary:
                pieces.append(vocabulary[before + word[start:end]])
                start = end
                break
        else:
            return [vocabulary["[UNK]"]]
    return pieces


def token_vectors(numbers: list[int], model: MiniLM, kinds: list[int] | None = None) -> np.ndarray:
    """Token vectors [tokens, width], in float64; `kinds` is 1 for tokens of the second text."""

    def tensor(name: str) -> np.ndarray:
        return model.tensors[name].astype(np.float64)

    def dense(rows: np.ndarray, name: str) -> np.ndarray:
        return rows @ tensor(name + ".weight").T + tensor(name + ".bias")

    def normalized(rows: np.ndarray, name: str) -> np.ndarray:
        centred = rows - rows.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + model.epsilon)
        return centred / spread * tensor(name + ".weight") + tensor(name + ".bias")

    rows = (
        tensor("embeddings.word_embeddings.weight")[numbers]
        + tensor("embeddings.position_embeddings.weight")[: len(numbers)]
        + tensor("embeddings.token_type_embeddings.weight")[kinds or [0] * len(numbers)]
    )
    rows = normalized(rows, "embeddings.LayerNorm")
    for number in range(model.layers):
        layer = f"encoder.layer.{number}."
        query, key, value = (
            np.split(dense(rows, f"{layer}attention.self.{part}"), model.heads, axis=1)
            for part in ("query", "key", "value")
        )
        mixed = []
        for q, k, v in zip(query, key, value, strict=True):
            weights = np.exp(q @ k.T / math.sqrt(q.shape[1]))
            mixed.append(weights / weights.sum(axis=1, keepdims=True) @ v)
        attended = dense(np.concatenate(mixed, axis=1), layer + "attention.output.dense")
        rows = normalized(rows + attended, layer + "attention.output.LayerNorm")
        inner = dense(rows, layer + "intermediate.dense")
        inner = inner * 0.5 * (1 + _erf(inner / math.sqrt(2)))
        rows = normalized(rows + dense(inner, layer + "output.dense"), layer + "output.LayerNorm")
    return rows
