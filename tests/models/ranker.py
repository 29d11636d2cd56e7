"""A model that parses tf.Example, with a user tower, a multi-valued feature and item tables."""

from pathlib import Path
from typing import Any

import tensorflow as tf

from .saving import save_parser

layers = tf.keras.layers
SPEC = {
    "user_age": tf.io.FixedLenFeature([], tf.int64, default_value=30),
    "user_words": tf.io.VarLenFeature(tf.string),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_price": tf.io.FixedLenFeature([2], tf.float32, default_value=[1.0, 2.0]),
}
USER = {"user_age": 44, "user_words": ["red", "unheard of", "blue"]}
ITEMS = [{"item_id": 7 * n % 40, "item_price": [n / 3, -1.0]} for n in range(23)]


class Ranker(tf.Module):  # type: ignore[misc]
    """A user tower, an item tower, and a network over both and their product.

    Args:
      masked: whether words that pad a row to the longest of the batch are ignored. Otherwise a
          user's score depends on the other users of a request.
    """

    def __init__(self, masked: bool = False) -> None:
        super().__init__()
        self.masked = masked
        tf.keras.utils.set_random_seed(1)
        self.words = layers.StringLookup(vocabulary=["red", "green", "blue"])
        self.word_table = layers.Embedding(4, 8)
        self.item_table = layers.Embedding(40, 8)
        self.tower = layers.Dense(8, activation="relu")
        self.norm = layers.BatchNormalization(beta_initializer="ones", gamma_initializer="uniform")
        self.top = layers.Dense(16, activation="relu", bias_initializer="uniform")
        self.score = layers.Dense(1, activation="sigmoid")

    def scores(self, columns: dict[str, Any]) -> dict[str, Any]:
        written = tf.sparse.to_dense(columns["user_words"])
        words = self.word_table(self.words(written))
        if self.masked:
            words *= tf.cast(written != "", tf.float32)[:, :, None]
        age = tf.math.log1p(tf.cast(columns["user_age"], tf.float32))[:, None]
        user = self.tower(tf.concat([tf.reduce_sum(words, axis=1), age], 1))
        item = self.item_table(tf.math.floormod(columns["item_id"], 40))
        together = tf.concat([item, user, user * item, columns["item_price"]], 1)
        return {"score": self.score(self.top(self.norm(together)))[:, 0]}


def save(folder: Path, masked: bool = False) -> None:
    module = Ranker(masked)
    save_parser(folder, module, SPEC, module.scores)
