"""Building blocks of published ranking models, each in a few lines."""

from typing import Any

import numpy as np
import tensorflow as tf

from ._model import Expected, Row, row_of
from ._weights import HISTORY, SPEC, Features, Weights, written_model

STEPS = {
    "user_steps": tf.io.FixedLenFeature([6], tf.int64, [0] * 6),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_price": tf.io.FixedLenFeature([2], tf.float32, [1.0, 2.0]),
}


def _fields(f: Features, w: Weights) -> Any:
    """The features as vectors [rows, 4, 8]."""
    user, item = w.table(f["user_id"]), w.table(f["item_id"])
    dense = [w.dense(f[name], 8) for name in ("user_age", "item_price")]
    return tf.stack([user, item, *dense], 1)


def _dot_interaction(f: Features, w: Weights) -> Any:
    fields = _fields(f, w)
    products = tf.matmul(fields, fields, transpose_b=True)
    ones = tf.ones_like(products)
    lower = tf.cast(ones - tf.linalg.band_part(ones, 0, -1), tf.bool)
    pairs = tf.reshape(tf.boolean_mask(products, lower), [tf.shape(fields)[0], 6])
    return w.score(pairs, fields[:, 2])


def _dot_of_constants(f: Features, w: Weights) -> Any:
    fields = _fields(f, w)
    products = tf.matmul(fields, fields, transpose_b=True)
    pairs = tf.boolean_mask(products, np.tri(4, k=-1) > 0, axis=1)
    return w.score(tf.reshape(pairs, [-1, 6]), fields[:, 3])


def _calibration(f: Features, w: Weights) -> Any:
    raw = w.score(w.table(f["user_id"]), w.table(f["item_id"]), f["item_price"])
    bucket = tf.clip_by_value(tf.searchsorted(tf.constant([-1.0, 0.0, 1.0]), raw), 0, 3)
    slopes = tf.gather(w.table(f["user_id"], 4), bucket, batch_dims=1)
    return tf.sigmoid(raw * slopes)


def _map_over_rows(f: Features, w: Weights) -> Any:
    def of_row(row: Any) -> Any:
        price, item = row
        return tf.cond(price[0] > 0, lambda: item * price[1], lambda: tf.nn.relu(item))

    mapped = tf.map_fn(
        of_row, (f["item_price"], w.table(f["item_id"])), fn_output_signature=tf.float32
    )
    return w.score(w.table(f["user_id"]), tf.ensure_shape(mapped, [None, 8]))


def _whitened(f: Features, w: Weights) -> Any:
    lower = tf.linalg.band_part(w(8, 8), -1, 0) + 3 * tf.eye(8)
    item = tf.transpose(tf.linalg.triangular_solve(lower, tf.transpose(w.table(f["item_id"]))))
    return w.score(w.table(f["user_id"]), item, f["item_price"])


def _lengths(lists: Any) -> Any:
    """The number of values in each row of a sparse tensor."""
    rows = tf.cast(lists.dense_shape[0], tf.int32)
    return tf.math.bincount(tf.cast(lists.indices[:, 0], tf.int32), minlength=rows)


def _attention(f: Features, w: Weights) -> Any:
    history = tf.sparse.to_dense(f["user_history"])
    there = tf.sequence_mask(_lengths(f["user_history"]), tf.shape(history)[1])
    keys, item = w.table(history), w.table(f["item_id"])
    query = tf.tile(item[:, None, :], [1, tf.shape(history)[1], 1])
    together = tf.concat([query, keys, query - keys, query * keys], -1)
    hidden = tf.sigmoid(tf.tensordot(together, w(32, 8), 1))
    fit = tf.tensordot(hidden, w(8, 1), 1)[:, :, 0]
    weights = tf.where(there, tf.nn.softmax(tf.where(there, fit, -1e9)), 0.0)
    return w.score(tf.matmul(weights[:, None], keys)[:, 0], item, f["item_price"])


def _transformer(f: Features, w: Weights) -> Any:
    history = f["user_steps"]
    there = tf.cast(tf.sequence_mask(tf.math.count_nonzero(history, 1), 6), tf.float32)
    there = tf.concat([there, tf.ones_like(there[:, :1])], 1)
    item = w.table(f["item_id"])
    steps = tf.concat([w.table(history), item[:, None]], 1) + w(7, 8)
    q, k, v = (tf.tensordot(steps, w(8, 8), 1) for _ in range(3))
    fit = tf.matmul(q, k, transpose_b=True) / 8**0.5 + (1 - there[:, None]) * -1e9
    seen = tf.reduce_sum(tf.matmul(tf.nn.softmax(fit), v) * there[..., None], 1)
    return w.score(seen, item, f["item_price"])


def _evolution(f: Features, w: Weights) -> Any:
    """A GRU whose steps are gated by attention and end with the history."""
    there = tf.sequence_mask(tf.math.count_nonzero(f["user_steps"], 1), 6, tf.float32)
    item, keys = w.table(f["item_id"]), w.table(f["user_steps"])
    update, kept, state = w(16, 8), w(16, 8), tf.zeros_like(item)
    for step in range(6):
        x = tf.concat([keys[:, step], state], 1)
        gate = tf.sigmoid(tf.reduce_sum(keys[:, step] * item, 1, keepdims=True))
        gate *= tf.sigmoid(x @ update) * there[:, step, None]
        state = (1 - gate) * state + gate * tf.tanh(x @ kept)
    return w.score(state, item, f["item_price"])


def _many_hot(f: Features, w: Weights) -> Any:
    steps = tf.cast(f["user_steps"] % 8, tf.int32)
    hot = tf.math.bincount(steps, minlength=8, maxlength=8, axis=-1, binary_output=True)
    hot = tf.ensure_shape(tf.cast(hot, tf.float32), [None, 8])
    return w.score(hot, w.table(f["item_id"]), f["item_price"])


def _auto_interaction(f: Features, w: Weights) -> Any:
    fields = _fields(f, w)
    q, k, v = (tf.tensordot(fields, w(8, 8), 1) for _ in range(3))
    met = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)
    flat = tf.reshape(tf.nn.relu(met + tf.tensordot(fields, w(8, 8), 1)), [-1, 32])
    return w.dense(flat, 1, tf.identity)[:, 0]


def _low_rank_cross(f: Features, w: Weights) -> Any:
    first = x = 0.1 * tf.concat([tf.reshape(_fields(f, w), [-1, 32]), f["item_price"]], 1)
    for _ in range(2):
        x = first * (tf.matmul(tf.matmul(x, w(34, 4)), w(4, 34)) + w(34)) + x
    return w.score(x)


def _short_steps(random: Any) -> Row:
    row = row_of(STEPS, random)
    count = int(random.integers(0, 7))
    return row | {"user_steps": row["user_steps"][:count] + [0] * (6 - count)}


MODELS = [
    written_model("dot_interaction", _dot_interaction, SPEC, "boolean_mask of a triangle, in DLRM"),
    written_model("dot_of_constants", _dot_of_constants, SPEC, "the same by a constant mask"),
    written_model("calibration", _calibration, SPEC, "gather(batch_dims=1) of one entry"),
    written_model(
        "map_over_rows",
        _map_over_rows,
        SPEC,
        "map_fn with a branch on each row",
        expected=Expected.REFUSED,
    ),
    written_model(
        "whitened",
        _whitened,
        SPEC,
        "a triangular system for all rows",
        expected=Expected.REFUSED,
    ),
    written_model(
        "attention_by_counts",
        _attention,
        HISTORY,
        "sequence_mask of bincount, in DIN",
        expected=Expected.REFUSED,
    ),
    written_model("transformer", _transformer, STEPS, "attention, in BST", row=_short_steps),
    written_model("evolution", _evolution, STEPS, "gated steps, in DIEN", row=_short_steps),
    written_model("many_hot", _many_hot, STEPS, "bincount of each row"),
    written_model("auto_interaction", _auto_interaction, SPEC, "attention over fields, in AutoInt"),
    written_model("low_rank_cross", _low_rank_cross, SPEC, "products of low rank, in DCN"),
]
