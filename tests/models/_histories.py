"""Models that read lists of the user and of items, but no padding."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ._model import Expected
from ._weights import Features, keras_model

layers = tf.keras.layers
Score = Callable[[Features], Any]
SPEC = {
    "user_history": tf.io.VarLenFeature(tf.int64),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_tags": tf.io.VarLenFeature(tf.int64),
}
HISTORY = ("user_history",)
STEPS = 6  # histories are truncated or padded to this length
FIXED = {
    "user_steps": tf.io.FixedLenFeature([STEPS], tf.int64),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
}
RAGGED = {
    "user_history": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_tags": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int32),
}
WEIGHTED = {
    "user_history": tf.io.VarLenFeature(tf.int64),
    "user_weights": tf.io.VarLenFeature(tf.float32),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
}


def _table() -> Any:
    return layers.Embedding(64, 8, "normal")


def masked_attention() -> Score:
    keys, query = _table(), _table()

    def score(f: Features) -> Any:
        history = tf.sparse.to_dense(f["user_history"], -1)
        there, known = history >= 0, keys(tf.maximum(history, 0))
        item = query(f["item_id"])
        logits = tf.reduce_sum(known * item[:, None, :], 2)
        weights = tf.nn.softmax(tf.where(there, logits, -1e9))
        weights = tf.where(there, weights, 0.0)
        return tf.reduce_sum(tf.reduce_sum(known * weights[:, :, None], 1) * item, 1)

    return score


def mask_zero() -> Score:
    table, pooled = (
        layers.Embedding(64, 8, "normal", mask_zero=True),
        layers.GlobalAveragePooling1D(),
    )
    item = _table()

    def score(f: Features) -> Any:
        history = tf.pad(tf.sparse.to_dense(f["user_history"]), [[0, 0], [1, 0]], constant_values=1)
        mean = pooled(table(history), mask=table.compute_mask(history))
        return tf.reduce_sum(mean * item(f["item_id"]), 1)

    return score


def multi_head_attention() -> Score:
    table, item, heads = _table(), _table(), layers.MultiHeadAttention(2, 4)

    def score(f: Features) -> Any:
        history = tf.pad(tf.sparse.to_dense(f["user_history"]), [[0, 0], [1, 0]], constant_values=1)
        query = item(f["item_id"])[:, None, :]
        seen = heads(query, table(history), attention_mask=(history > 0)[:, None, :])
        return tf.reduce_sum(seen * query, [1, 2])

    return score


def _recurrent(unroll: bool) -> Score:
    table, item, cells = _table(), _table(), layers.GRU(8, unroll=unroll)

    def score(f: Features) -> Any:
        state = cells(table(f["user_steps"]), mask=f["user_steps"] > 9)
        return tf.reduce_sum(state * item(f["item_id"]), 1)

    return score


def gru_in_a_loop() -> Score:
    return _recurrent(unroll=False)


def gru_unrolled() -> Score:
    return _recurrent(unroll=True)


def sparse_lookups() -> Score:
    table, item = tf.Variable(tf.random.stateless_normal([64, 8], [1, 2])), _table()

    def score(f: Features) -> Any:
        pooled = [
            tf.nn.safe_embedding_lookup_sparse(table, f[name], combiner=combiner)
            for name in ("user_history", "item_tags")
            for combiner in ("sum", "mean", "sqrtn")
        ]
        return tf.reduce_sum(tf.add_n(pooled) * item(f["item_id"]), 1)

    return score


def weighted_lookup() -> Score:
    table, item = tf.Variable(tf.random.stateless_normal([64, 8], [1, 2])), _table()

    def score(f: Features) -> Any:
        weights = f["user_weights"]
        same = tf.SparseTensor(
            f["user_history"].indices, tf.abs(weights.values), weights.dense_shape
        )
        pooled = tf.nn.safe_embedding_lookup_sparse(table, f["user_history"], same, combiner="mean")
        return tf.reduce_sum(pooled * item(f["item_id"]), 1)

    return score


def ragged_layers() -> Score:
    table, item = tf.Variable(tf.random.stateless_normal([64, 8], [3, 4])), _table()

    def score(f: Features) -> Any:
        seen = tf.reduce_sum(tf.gather(table, f["user_history"]), 1)
        tags = tf.reduce_sum(tf.gather(table, f["item_tags"]), 1)
        counts = tf.cast(f["item_tags"].row_lengths(), tf.float32)
        return tf.reduce_sum((seen + tags) * item(f["item_id"]), 1) / (1.0 + counts)

    return score


def _weighted_row(random: Any) -> dict[str, list[Any]]:
    count = int(random.integers(1, 6))
    return {
        "user_history": random.integers(0, 64, count).tolist(),
        "user_weights": random.uniform(0.5, 2.0, count).tolist(),
        "item_id": random.integers(0, 64, 1).tolist(),
    }


MODELS = [
    keras_model(masked_attention, SPEC, "softmax over a row's own history", own_length=HISTORY),
    keras_model(mask_zero, SPEC, "a mean that leaves padding out", own_length=HISTORY),
    keras_model(multi_head_attention, SPEC, "Keras's attention with a mask", own_length=HISTORY),
    keras_model(gru_in_a_loop, FIXED, "a loop over steps of every row", expected=Expected.REFUSED),
    keras_model(gru_unrolled, FIXED, "the same without the loop"),
    keras_model(sparse_lookups, SPEC, "SparseSegmentMean, Unique of ids, SparseFillEmptyRows"),
    keras_model(
        weighted_lookup,
        WEIGHTED,
        "sparse weights beside ids",
        row=_weighted_row,
        expected=Expected.REFUSED,
    ),
    keras_model(ragged_layers, RAGGED, "segment sums by row splits"),
]
