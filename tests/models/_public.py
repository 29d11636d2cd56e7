"""Ranking models that are public, each in its shape and a few lines."""

from typing import Any

import tensorflow as tf

from ._model import Expected, Random, Row, row_of
from ._weights import Features, Weights, dense, mask, written_model

SPEC = {
    "user_id": tf.io.FixedLenFeature([], tf.int64),
    "user_age": tf.io.FixedLenFeature([2], tf.float32, [30.0, 1.0]),
    "user_history": tf.io.VarLenFeature(tf.int64),
    "user_query": tf.io.FixedLenFeature([], tf.string, b""),
    "user_seen": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_price": tf.io.FixedLenFeature([2], tf.float32, [1.0, 2.0]),
    "item_title": tf.io.FixedLenFeature([], tf.string, b""),
    "item_tags": tf.io.VarLenFeature(tf.int64),
    "item_shops": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int32),
}
_WORDS = [b"red shoes", b"a blue blue coat", b"hat", b"green"]


def _row(random: Random) -> Row:
    texts = {name: [_WORDS[random.integers(4)]] for name in ("user_query", "item_title")}
    return row_of(SPEC, random) | texts


def _fields(f: Features, w: Weights) -> Any:
    """Vectors of the plain features, [rows, 4, 8]."""
    numbers = [w.dense(f[name], 8) for name in ("user_age", "item_price")]
    return tf.stack([w.table(f["user_id"]), w.table(f["item_id"]), *numbers], 1)


def _flat(f: Features, w: Weights) -> Any:
    return tf.reshape(_fields(f, w), [-1, 32])


def _pooled(f: Features, w: Weights, name: str, combiner: str = "mean") -> Any:
    return tf.nn.safe_embedding_lookup_sparse(w(64, 8), f[name], combiner=combiner)


def _mlp(x: Any, w: Weights, units: int = 1) -> Any:
    return w.dense(w.dense(x), units, tf.identity)


def _words(f: Features, w: Weights, name: str) -> Any:
    """TextVectorization, an embedding with a mask, GlobalAveragePooling1D."""
    words = tf.strings.split(tf.strings.lower(f[name])).to_tensor("")
    there = tf.cast(words != "", tf.float32)[..., None]
    total = tf.reduce_sum(w.table(words) * there, 1)
    return total / tf.maximum(tf.reduce_sum(there, 1), 1.0)


def _attended(steps: Any, there: Any, w: Weights) -> Any:
    """Self-attention over steps [rows, length, width], then their masked mean."""
    width = steps.shape[-1]
    q, k, v = (tf.tensordot(steps, w(width, 8), 1) for _ in range(3))
    fit = tf.matmul(q, k, transpose_b=True) / 3 + (1 - there[:, None]) * -1e9
    seen = tf.matmul(tf.nn.softmax(fit), v) * there[..., None]
    return tf.reduce_sum(seen, 1) / (tf.reduce_sum(there, 1, keepdims=True) + 1.0)


def dlrm(f: Features, w: Weights) -> Any:
    fields = tf.concat([_fields(f, w), _pooled(f, w, "user_history", "sum")[:, None]], 1)
    products = tf.matmul(fields, fields, transpose_b=True)
    lower = tf.linalg.band_part(tf.ones_like(products), -1, 0) > 0
    lower &= ~(tf.linalg.band_part(tf.ones_like(products), 0, 0) > 0)
    pairs = tf.reshape(tf.boolean_mask(products, lower), [tf.shape(fields)[0], 10])
    return _mlp(tf.concat([pairs, fields[:, 2]], 1), w)


def din(f: Features, w: Weights) -> Any:
    keys, item, there = (
        w.table(dense(f, "user_history")),
        w.table(f["item_id"]),
        mask(f, "user_history"),
    )
    query = tf.tile(item[:, None], [1, tf.shape(keys)[1], 1])
    fit = w.dense(tf.reshape(tf.concat([keys, query, keys - query, keys * query], -1), [-1, 32]), 1)
    fit = tf.reshape(fit, tf.shape(there)) * there
    return _mlp(tf.concat([tf.einsum("rl,rld->rd", fit, keys), item, _flat(f, w)], 1), w)


def bst(f: Features, w: Weights) -> Any:
    item = w.table(f["item_id"])[:, None]
    steps = tf.concat([w.table(dense(f, "user_history")), item], 1)
    there = tf.concat([mask(f, "user_history"), tf.ones_like(item[..., 0])], 1)
    return _mlp(tf.concat([_attended(steps, there, w), _flat(f, w)], 1), w)


def two_tower_ragged(f: Features, w: Weights) -> Any:
    user = tf.reduce_mean(tf.gather(w(64, 8), f["user_seen"]), 1)
    item = tf.reduce_sum(tf.gather(w(64, 8), f["item_shops"]), 1) + w.table(f["item_id"])
    user = tf.where(tf.math.is_nan(user), 0.0, user)
    return tf.reduce_sum(w.dense(user, 8) * w.dense(item, 8), 1)


def wide_and_deep(f: Features, w: Weights) -> Any:
    crossed = tf.sparse.cross_hashed([f["item_tags"], f["user_query"][:, None]], 64)
    wide = tf.nn.safe_embedding_lookup_sparse(w(64, 1), crossed, combiner="sum")
    return wide + _mlp(tf.concat([_flat(f, w), _pooled(f, w, "item_tags", "sqrtn")], 1), w)


def text_ranker(f: Features, w: Weights) -> Any:
    query, title = _words(f, w, "user_query"), _words(f, w, "item_title")
    return _mlp(tf.concat([query, title, query * title], 1), w)


def map_over_rows(f: Features, w: Weights) -> Any:
    def of_row(row: Any) -> Any:
        price, item = row
        return tf.cond(price[0] > 0, lambda: item * price[1], lambda: tf.nn.relu(item))

    rows = f["item_price"], w.table(f["item_id"])
    mapped = tf.map_fn(of_row, rows, fn_output_signature=tf.float32)
    return w.score(w.table(f["user_id"]), tf.ensure_shape(mapped, [None, 8]))


def mean_of_nothing(f: Features, w: Weights) -> Any:
    """The mean as GlobalAveragePooling1D computes it: NaN for an empty list."""
    there = mask(f, "user_history")[:, :, None]
    total = tf.reduce_sum(w.table(dense(f, "user_history")) * there, 1)
    return w.score(total / tf.reduce_sum(there, 1), w.table(f["item_id"]), f["item_price"])


def price(f: Features, w: Weights) -> Any:
    return w.score(w.table(f["user_id"]), w.table(f["item_id"]), f["item_price"])


HISTORY = {"own_length": ("user_history",)}


def _row_with_nan(random: Random) -> Row:
    row = _row(random)
    return row | ({"item_price": [float("nan")] * 2} if random.random() < 0.1 else {})


MODELS = [
    written_model(f"public_{score.__name__}", score, SPEC, why, row=_row, recorded=True, **more)
    for score, why, more in (
        (dlrm, "boolean_mask of a triangle", {}),
        (din, "attention without a softmax", HISTORY),
        (bst, "the item behind the user's list", HISTORY),
        (two_tower_ragged, "means of ragged lists", {}),
        (wide_and_deep, "crossed lists", {"own_length": ("item_tags",)}),
        # The number of words is no column.
        (text_ranker, "as many words as the longest text", {"expected": Expected.LENGTH}),
        (map_over_rows, "a branch on each row", {"expected": Expected.REFUSED}),
    )
]
MODELS += [
    written_model(name, score, SPEC, why, **more)
    for name, score, why, more in (
        ("nan_mean_of_nothing", mean_of_nothing, "a user's empty list", {"row": _row, **HISTORY}),
        ("nan_in_item_price", price, "sent by a client", {"row": _row_with_nan}),
    )
]
