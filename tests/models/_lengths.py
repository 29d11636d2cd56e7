"""Models whose result depends on the padding of a request's lists."""

from pathlib import Path
from typing import Any

import tensorflow as tf

from ._exact import Build, Exact, Features, saver, spec_of
from ._model import Expected, Random, RankingModel, Row
from .saving import save_graph

v1 = tf.compat.v1
Outputs = dict[str, Any]


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


def last_column(m: Exact, f: Features) -> Outputs:
    history = tf.pad(tf.sparse.to_dense(f["user_history"]), [[0, 0], [1, 0]])
    return {"score": m.score(f, m.embedded(m.users, history[:, -1]))}


def _attention(m: Exact, f: Features, masked: Any) -> Outputs:
    """Attention over a history and its positions; an empty history gets the mean of the padding."""
    history = tf.sparse.to_dense(f["user_history"], -1)
    there = history >= 0
    position = tf.cast(tf.range(tf.shape(history)[1]), tf.float32)
    keys = m.embedded(m.items, tf.maximum(history, 0)) + position[None, :, None]
    item = m.embedded(m.items, f["item_id"])
    weights = tf.nn.softmax(masked(there, tf.einsum("rld,rd->rl", keys, item) / 16))
    return {"score": m.score(f, tf.einsum("rl,rld->rd", weights, keys))}


def attention_over_nothing(m: Exact, f: Features) -> Outputs:
    return _attention(m, f, lambda there, fit: tf.where(there, fit, -1e9))


def weak_mask(m: Exact, f: Features) -> Outputs:
    return _attention(m, f, lambda there, fit: 1e6 * fit + tf.where(there, 0.0, -1e6))


def _model(build: Build, why: str, feature: str) -> RankingModel:
    spec = spec_of(feature)
    return RankingModel(build.__name__, saver(build, spec), spec, Expected.LENGTH, why)


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


MODELS = [
    RankingModel(
        "named_length",
        _save_named_length,
        {},
        Expected.LENGTH,
        "a mean over a list beside an input that is called its length",
        row=_named_length_row,
        parses=False,
    ),
    _model(unmasked_mean, "a mean over a user's padded list", "user_history"),
    _model(unmasked_tags, "a mean over items' padded lists", "item_tags"),
    _model(unmasked_clicks, "a mean over a sequence that has no length", "user_clicks"),
    _model(last_column, "the last column of a padded list", "user_history"),
    _model(attention_over_nothing, "weights of an empty list add up to 1", "user_history"),
    _model(weak_mask, "a mask that large scores outweigh", "user_history"),
]
