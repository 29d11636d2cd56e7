"""The layers that the networks share."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from colcast.zoo.papers.model import Columns, Feature

layers = tf.keras.layers
ops = tf.keras.ops


def table(feature: Feature, width: int, scale: float) -> Any:
    """An embedding table for a feature's ids, scaled so that sums over a row stay of order one."""
    spread = tf.keras.initializers.RandomNormal(stddev=0.7 / feature.values**0.5)
    return layers.Embedding(feature.table_rows(scale), width, embeddings_initializer=spread)


def embed(feature: Feature, columns: Columns, width: int, scale: float) -> Any:
    """The embedding of a feature's id, or the sum of its several ids', [rows, width]."""
    embedded = table(feature, width, scale)(columns[feature.name])
    return embedded if feature.values == 1 else ops.sum(embedded, axis=1)


def network(widths: Sequence[int], *, last: str | None = "relu") -> Any:
    """Dense layers of these widths, with relu between them and `last` after the last one."""
    inner = [layers.Dense(width, activation="relu") for width in widths[:-1]]
    return tf.keras.Sequential([*inner, layers.Dense(widths[-1], activation=last)])


def probability(logits: Any) -> Any:
    """Converts logits to probabilities: [rows, 1] -> [rows]."""
    return ops.squeeze(ops.sigmoid(logits), axis=1)


def click_probability(logits: Any) -> Any:
    """The probability of the second of two classes: [rows, 2] -> [rows]."""
    return ops.softmax(logits, axis=1)[:, 1]
