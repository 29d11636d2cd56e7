"""A model from a paper: its features and its network, and the layers that networks share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

Row = dict[str, Any]
Columns = dict[str, Any]  # feature name -> Keras tensor [rows, ...]


@dataclass(frozen=True)
class Feature:
    """A feature, named `user_...` or `item_...` after its domain.

    Attributes:
      name: its name in a tf.Example.
      ids: number of rows in its embedding table at full scale; 0 for plain numbers.
      values: number of values in a row; for `history` the maximum.
      history: whether rows have varying numbers of values; ids then start at 1, since 0 is padding.
    """

    name: str
    ids: int = 0
    values: int = 1
    history: bool = False

    def table_rows(self, scale: float) -> int:
        """The number of rows in its table at a scale; a history has one more row for padding."""
        return max(10, int(self.ids * scale)) + self.history

    @property
    def dtype(self) -> Any:
        """int64 ids or float32 numbers."""
        return tf.int64 if self.ids else tf.float32

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape after the row dimension."""
        if self.history:
            return (None,)
        return () if self.values == 1 else (self.values,)

    @property
    def example_spec(self) -> Any:
        """The feature's specification for tf.io.parse_example."""
        if self.history:
            return tf.io.VarLenFeature(self.dtype)
        return tf.io.FixedLenFeature(self.shape, self.dtype)


@dataclass(frozen=True)
class PaperModel:
    """One of the eight models.

    Attributes:
      name: a short name, also used for its folder.
      features: features of user and item.
      network: (features, columns, scale) -> output name -> tensor [rows].
    """

    name: str
    features: tuple[Feature, ...]
    network: Callable[[Sequence[Feature], Columns, float], Columns]

    def build(self, scale: float) -> Any:
        """The Keras model from feature columns (histories padded with 0) to outputs by name."""
        columns = {
            feature.name: tf.keras.Input(feature.shape, dtype=feature.dtype, name=feature.name)
            for feature in self.features
        }
        return tf.keras.Model(columns, self.network(self.features, columns, scale))

    def request(self, rows: int, seed: int, scale: float) -> tuple[Row, list[Row]]:
        """A generated user row and `rows` item rows, determined by the seed.

        Small ids are popular: half of the drawn ids are below a tenth of the table.
        """
        random = np.random.default_rng(seed)

        def row(side: str) -> Row:
            return {
                feature.name: _value(feature, scale, random)
                for feature in self.features
                if feature.name.startswith(side)
            }

        return row("user_"), [row("item_") for _ in range(rows)]


def _value(feature: Feature, scale: float, random: np.random.Generator) -> Any:
    count = feature.values
    if feature.history:
        count = int(random.integers(count // 2, count + 1))
    if feature.ids:
        first, end = int(feature.history), feature.table_rows(scale)
        popular = random.random(count) ** 3.3
        values = (first + popular * (end - first)).astype(np.int64).tolist()
    else:
        values = random.normal(size=count).astype(np.float32).tolist()
    return values if feature.shape else values[0]


layers = tf.keras.layers
ops = tf.keras.ops


def table(feature: Feature, width: int, scale: float) -> Any:
    """An embedding table for a feature's ids, scaled so that sums over a row are about one."""
    spread = tf.keras.initializers.RandomNormal(stddev=0.7 / feature.values**0.5)
    return layers.Embedding(feature.table_rows(scale), width, embeddings_initializer=spread)


def embed(feature: Feature, columns: Columns, width: int, scale: float) -> Any:
    """The embedding of a feature's id, or the sum of the embeddings of its ids, [rows, width]."""
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
