"""A ranker whose weights are small whole numbers: its sums are exact in any order.

A rank or threshold of its scores therefore does not depend on rounding; a wrong one is a bug.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from .saving import save_parser

Features = Mapping[str, Any]

SPEC = {
    "user_id": tf.io.FixedLenFeature([], tf.int64),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_price": tf.io.FixedLenFeature([], tf.float32, 1.0),
}
MORE = {
    "user_country": tf.io.FixedLenFeature([], tf.string, b"DE"),
    "user_level": tf.io.FixedLenFeature([], tf.float32, 0.5),
    "user_history": tf.io.VarLenFeature(tf.int64),
    "user_clicks": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    "item_shop": tf.io.FixedLenFeature([], tf.int64, 0),
    "item_tags": tf.io.VarLenFeature(tf.int64),
}
WIDTH, WIDE = 64, 2048  # widths of the hidden layer; WIDE is worth splitting at 1,500 candidates


class Exact(tf.Module):
    """Embeddings of user and item, a hidden layer, a score.

    Args:
      hidden: the width of the hidden layer.
    """

    def __init__(self, hidden: int = WIDTH) -> None:
        super().__init__()
        random = np.random.default_rng(7)

        def whole(low: int, high: int, *shape: int) -> Any:
            return tf.Variable(random.integers(low, high + 1, shape).astype(np.float32))

        self.users, self.items = whole(-2, 2, 64, 16), whole(-2, 2, 64, 16)
        self.kernel, self.last = whole(-1, 1, 33, hidden), whole(-1, 1, hidden, 1)
        self.scale = 2.0 ** -np.ceil(np.log2(4 * hidden**0.5))

    def embedded(self, table: Any, ids: Any) -> Any:
        """Rows of a table, for arbitrary ids."""
        return tf.gather(table, tf.math.floormod(ids, 64))

    def score(self, f: Features, user: Any = None) -> Any:
        """Scores [rows]; `user` [rows, 16] replaces the embedded id."""
        user = self.embedded(self.users, f["user_id"]) if user is None else user
        item = self.embedded(self.items, f["item_id"])
        both = tf.concat([user, item, f["item_price"][:, None]], 1)
        return tf.squeeze(tf.nn.relu(both @ self.kernel) @ self.last, 1) * self.scale


Build = Callable[[Exact, Features], dict[str, Any]]  # outputs by name


def saver(build: Build, spec: Features, hidden: int = WIDTH) -> Callable[[Path], None]:
    """Returns a function that saves a model that scores parsed features with `build`."""

    def save(folder: Path) -> None:
        module = Exact(hidden)
        save_parser(folder, module, spec, partial(build, module))

    return save


def spec_of(*more: str) -> dict[str, Any]:
    """The features that every model has, and additional ones."""
    return SPEC | {name: MORE[name] for name in more}
