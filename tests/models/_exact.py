"""A ranker whose weights are small whole numbers, so sums are exact in any order.

Ranks and thresholds of its scores therefore do not depend on rounding; a difference is a bug.
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
    "user_history": tf.io.VarLenFeature(tf.int64),
    "user_clicks": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    "item_shop": tf.io.FixedLenFeature([], tf.int64, 0),
    "item_tags": tf.io.VarLenFeature(tf.int64),
}
WIDTH, WIDE = 64, 2048  # widths of the hidden layer; at 1,500 candidates, WIDE is worth splitting


class Exact(tf.Module):
    """A ranker with embeddings of user and item and one hidden layer.

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
        """The table's rows for any ids."""
        return tf.gather(table, tf.math.floormod(ids, 64))

    def score(self, f: Features, user: Any = None) -> Any:
        """Scores [rows]; `user` [rows, 16] replaces the user's embedding."""
        user = self.embedded(self.users, f["user_id"]) if user is None else user
        item = self.embedded(self.items, f["item_id"])
        both = tf.concat([user, item, f["item_price"][:, None]], 1)
        return tf.squeeze(tf.nn.relu(both @ self.kernel) @ self.last, 1) * self.scale


Build = Callable[[Exact, Features], dict[str, Any]]  # returns outputs by name


def saver(build: Build, spec: Features, hidden: int = WIDTH) -> Callable[[Path], None]:
    """A function that saves a model whose outputs `build` computes from parsed features."""

    def save(folder: Path) -> None:
        module = Exact(hidden)
        save_parser(folder, module, spec, partial(build, module))

    return save


def spec_of(*more: str) -> dict[str, Any]:
    """The features that every model has, and some of MORE."""
    return SPEC | {name: MORE[name] for name in more}
