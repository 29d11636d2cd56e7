"""Models whose candidates interact, or whose scores depend on how far lists are padded.

Their weights are small whole numbers, so sums are exact in any order. Ranks and thresholds of
scores therefore do not depend on rounding; a difference is a bug. tests/rows has more ops that mix.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from ._model import RARE_COUNTRY, Expected, Random, RankingModel, Row
from .saving import save_graph, save_parser

v1 = tf.compat.v1
Features = Mapping[str, Any]
Outputs = dict[str, Any]
KEPT = 100  # more rows than most trials of an export have
WIDTH, WIDE = 64, 2048  # widths of the hidden layer; at 1,500 candidates, WIDE is worth splitting

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


def _best(values: Any) -> Any:
    """The lowest of the KEPT largest values."""
    return tf.math.top_k(values, tf.minimum(KEPT, tf.shape(values)[0])).values[-1]


def softmax(m: Exact, f: Features) -> Outputs:
    return {"share": tf.nn.softmax(m.score(f), axis=0)}


def keep_best(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    return {"score": tf.where(score >= _best(score), score, -9.0)}


def keep_cheapest(m: Exact, f: Features) -> Outputs:
    price = f["item_price"] + tf.cast(f["item_id"], tf.float32)
    return {"score": tf.where(price >= _best(price), m.score(f), -9.0)}


def branch_on_country(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    rare = tf.reduce_any(tf.equal(f["user_country"], RARE_COUNTRY))
    return {"score": tf.cond(rare, lambda: score - tf.reduce_max(score), lambda: score)}


def unique_counts(m: Exact, f: Features) -> Outputs:
    _, at, counts = tf.unique_with_counts(f["item_shop"])
    return {"score": m.score(f) + tf.cast(tf.gather(counts, at), tf.float32)}


def scalar_output(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    return {"score": score, "total": tf.reduce_sum(score)}


def one_row_output(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    return {"score": score, "best": tf.reduce_max(score, keepdims=True)}


def _mean(m: Exact, table: Any, ids: Any) -> Any:
    """The mean, padding included; zeros if there are no ids."""
    embedded = m.embedded(table, ids)
    steps = tf.cast(tf.maximum(tf.shape(ids)[1], 1), tf.float32)
    return tf.reduce_sum(embedded, 1) / steps


def unmasked_mean(m: Exact, f: Features) -> Outputs:
    history = tf.sparse.to_dense(f["user_history"])
    return {"score": m.score(f, _mean(m, m.users, history))}


def unmasked_tags(m: Exact, f: Features) -> Outputs:
    tags = _mean(m, m.items, tf.sparse.to_dense(f["item_tags"]))
    return {"score": m.score(f) + tf.reduce_sum(tags, 1)}


def unmasked_clicks(m: Exact, f: Features) -> Outputs:
    return {"score": m.score(f, _mean(m, m.users, f["user_clicks"]))}


def _save_named_length(folder: Path) -> None:
    """A model of tensors; its `user_seen/length` is an ordinary number, not a list's length."""
    with tf.Graph().as_default(), v1.Session() as session:
        seen = v1.placeholder(tf.float32, [None, None], "seen")
        length = v1.placeholder(tf.int64, [None], "length")
        price = v1.placeholder(tf.float32, [None], "price")
        mean = tf.reduce_mean(seen, axis=1) + tf.cast(length, tf.float32)
        inputs = {"user_seen": seen, "user_seen/length": length, "item_price": price}
        signature = v1.saved_model.predict_signature_def(inputs, {"score": tf.tanh(mean) * price})
        save_graph(folder, session, {"serving_default": signature})


def _named_length_row(random: Random) -> Row:
    return {
        "user_seen": random.normal(size=random.integers(1, 7)).tolist(),
        "user_seen/length": random.integers(0, 2, 1).tolist(),
        "item_price": random.normal(size=1).tolist(),
    }


INTERACTING, LENGTH = Expected.INTERACTING, Expected.LENGTH
Build = Callable[[Exact, Features], Outputs]


def _model(
    build: Build, expected: Expected, why: str, *more: str, hidden: int = WIDTH
) -> RankingModel:
    spec = SPEC | {name: MORE[name] for name in more}

    def save(folder: Path) -> None:
        module = Exact(hidden)
        save_parser(folder, module, spec, partial(build, module))

    return RankingModel(build.__name__, save, spec, expected, why)


MODELS = [
    _model(softmax, INTERACTING, "Softmax over the rows", hidden=WIDE),
    _model(keep_best, INTERACTING, f"TopKV2 of {KEPT}: few rows show nothing", hidden=WIDE),
    _model(keep_cheapest, INTERACTING, f"TopKV2 of {KEPT} over items alone"),
    _model(branch_on_country, INTERACTING, "a branch taken for few users", "user_country"),
    _model(unique_counts, INTERACTING, "UniqueWithCounts of the rows", "item_shop"),
    _model(scalar_output, INTERACTING, "an output without rows"),
    _model(one_row_output, INTERACTING, "an output of one row"),
    _model(unmasked_mean, LENGTH, "a mean over a user's padded list", "user_history"),
    _model(unmasked_tags, LENGTH, "a mean over items' padded lists", "item_tags"),
    _model(unmasked_clicks, LENGTH, "a mean over a sequence that has no length", "user_clicks"),
    RankingModel(
        "named_length",
        _save_named_length,
        {},
        LENGTH,
        "a mean over a list beside an input that is called its length",
        row=_named_length_row,
        parses=False,
    ),
]
