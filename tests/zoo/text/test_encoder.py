"""Vectors and word pieces equal the published network's, whatever else the request contains."""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from colcast.zoo.text import bert, encoder
from hypothesis import given, settings
from hypothesis import strategies as st

from .conftest import token_vectors, tokens

TEXTS = [
    "The dollar fell against the yen.",
    "Crude oil prices rose sharply after the ministers agreed to cut output by a tenth",
    "",
    "Cocoa",
    "A company that makes shoes said its profit doubled, helped by exports to the south " * 2,
]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def references(minilm, vocabulary):
    return [token_vectors(tokens(text, vocabulary, 256), minilm) for text in TEXTS]


@pytest.mark.parametrize(
    ("output", "pooled"),
    [
        ("embeddings", lambda rows: rows.mean(axis=0)),
        ("embeddings/cls", lambda rows: rows[0]),
        ("embeddings/max", lambda rows: rows.max(axis=0)),
    ],
)
def test_vectors_are_those_of_the_paper(encode, references, output, pooled):
    expected = unit(np.stack([pooled(rows) for rows in references]))
    cosine = (encode(TEXTS)[output] * expected).sum(axis=1)
    assert cosine.min() > 1 - 1e-6


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(TEXTS), max_size=40))
def test_a_text_has_the_same_vector_in_any_batch(encode, texts):
    alone = dict(zip(TEXTS, encode(TEXTS)["embeddings"], strict=True))
    together = encode(texts)["embeddings"]
    assert together.shape == (len(texts), 384)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(vector, alone[text], atol=2e-6)


@pytest.mark.parametrize("max_seq_len", [-1, 0, 1, 513])
def test_an_impossible_text_length_is_named(encode, max_seq_len):
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        encode(["text"], max_seq_len)
    assert f"max_seq_len must be 2 to 512, got] [{max_seq_len}]" in str(raised.value)


@pytest.fixture(scope="module")
def exact(minilm):
    return encoder.Encoder(minilm)


def test_bfloat16_is_within_the_guard_and_not_exact(minilm, exact):
    rounded = encoder.Encoder(minilm, bert.in_bfloat16(bert.values(minilm)))
    found = encoder.check(exact.vectors, rounded.vectors, "bfloat16")
    assert encoder.LEAST_COSINE <= found.least <= found.mean < 1 - 1e-6


def test_a_model_too_far_from_the_exact_one_is_refused_with_the_figures(minilm, exact):
    values = {
        name: np.asarray(value).astype(ml_dtypes.float8_e5m2).astype(np.float32)
        for name, value in bert.values(minilm).items()
    }
    with pytest.raises(RuntimeError, match=r"float8: the cosine .* is at least 0\.\d+.*0\.999"):
        encoder.check(exact.vectors, encoder.Encoder(minilm, values).vectors, "float8")


def test_the_written_model_is_smaller_and_its_vectors_are_float32():
    base_path = encoder.ensure(precision="bfloat16")
    sizes = [
        (path / "1" / "saved_model.pb").stat().st_size for path in (encoder.ensure(), base_path)
    ]
    assert sizes[1] < 0.75 * sizes[0]
    model = tf.saved_model.load(str(base_path / "1"))
    vectors = model.signatures["encode"](
        texts=tf.constant(["one text"]), max_seq_len=tf.constant(256)
    )["embeddings"]
    assert vectors.dtype == tf.float32
    assert float(tf.norm(vectors)) == pytest.approx(1, abs=1e-5)


WORDY = [
    "Dr. Strangelove or: How I Learned to Stop Worrying and Love the Bomb",
    "don't  stop\tme\nnow -- (really)!",
    "Les Misérables, Ünïcödé and naïve façades",
    "東京物語 Tokyo Story",
    "3.14 is not 22/7; $5 + 10% ~ `x` ^ |y|",
    "pneumonoultramicroscopicsilicovolcanoconiosis",
    "x" * 200,
    "",
    "   ",
    "a\x00b zero\u200bwidth",
]


def expected(texts, vocabulary, max_seq_len=256):
    return [tokens(text, vocabulary, max_seq_len) for text in texts]


def encoded(outputs):
    pairs = zip(outputs["tokens"], outputs["tokens/length"], strict=True)
    return [row[:length].tolist() for row, length in pairs]


def test_texts_of_all_kinds(encode, vocabulary):
    assert encoded(encode(WORDY)) == expected(WORDY, vocabulary)


@pytest.mark.parametrize("max_seq_len", [2, 3, 8, 512])
def test_longer_texts_are_cut_and_still_end_with_sep(encode, vocabulary, max_seq_len):
    texts = ["word " * 600, *WORDY]
    assert encoded(encode(texts, max_seq_len)) == expected(texts, vocabulary, max_seq_len)


def test_bytes_that_are_no_utf8_are_left_out(encode):
    broken = encode([b"caf\xff\xfe\xe9 noir", b"\xff"])
    assert encoded(broken) == encoded(encode(["caf noir", ""]))
