"""The published weights, and an encoder made from them."""

from pathlib import Path

import pytest
import tensorflow as tf
from colcast.zoo.text import encoder, weights


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
