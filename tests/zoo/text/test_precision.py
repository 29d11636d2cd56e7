"""Products in bfloat16: as near as the guard wants, and refused where they are not."""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from colcast.zoo.text import bert, encoder, guard


@pytest.fixture(scope="module")
def exact(minilm):
    return encoder.Encoder(minilm)


def test_bfloat16_is_within_the_guard_and_not_exact(minilm, exact):
    rounded = encoder.Encoder(minilm, bert.in_bfloat16(bert.values(minilm)))
    found = guard.check(exact.vectors, rounded.vectors, "bfloat16")
    assert guard.LEAST_COSINE <= found.least <= found.mean < 1 - 1e-6


def test_a_model_too_far_from_the_exact_one_is_refused_with_the_figures(minilm, exact):
    values = {
        name: np.asarray(value).astype(ml_dtypes.float8_e5m2).astype(np.float32)
        for name, value in bert.values(minilm).items()
    }
    with pytest.raises(RuntimeError, match=r"float8: the cosine .* is 0\.\d+ at least.*0\.999"):
        guard.check(exact.vectors, encoder.Encoder(minilm, values).vectors, "float8")


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
