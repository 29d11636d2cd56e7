"""Ranking models that are public, each in its shape and a few lines."""

from typing import Any

import tensorflow as tf

from ._hostile import attended, dense, mask
from ._model import Expected, Random, Row, row_of
from ._weights import Features, Weights, written_model

SPEC = {
    "user_id": tf.io.FixedLenFeature([], tf.int64),
    "user_age": tf.io.FixedLenFeature([2], tf.float32, [30.0, 1.0]),
    "user_history": tf.io.VarLenFeature(tf.int64),
    "user_times": tf.io.VarLenFeature(tf.float32),  # as long as the history
    "user_query": tf.io.FixedLenFeature([], tf.string, b""),
    "user_seen": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_price": tf.io.FixedLenFeature([2], tf.float32, [1.0, 2.0]),
    "item_title": tf.io.FixedLenFeature([], tf.string, b""),
    "item_tags": tf.io.VarLenFeature(tf.int64),
    "item_weights": tf.io.VarLenFeature(tf.float32),  # as long as the tags
    "item_shops": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int32),
}
_WORDS = [b"red shoes", b"a blue blue coat", b"hat", b"green"]


def _row(random: Random) -> Row:
    row = row_of(SPEC, random)
    for name, like in (("user_times", "user_history"), ("item_weights", "item_tags")):
        row[name] = (random.integers(1, 9, len(row[like])) / 4).tolist()
    texts = {name: [_WORDS[random.integers(4)]] for name in ("user_query", "item_title")}
    return row | texts


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
    return _mlp(tf.concat([attended(steps, there, w), _flat(f, w)], 1), w)


def sasrec(f: Features, w: Weights) -> Any:
    keys = w.table(dense(f, "user_history"))
    keys += w(8, 8)[: tf.shape(keys)[1]]
    return tf.reduce_sum(attended(keys, mask(f, "user_history"), w) * w.table(f["item_id"]), 1)


def behaviour_sequence_with_times(f: Features, w: Weights) -> Any:
    steps = tf.concat(
        [w.table(dense(f, "user_history")), tf.math.log1p(dense(f, "user_times"))[..., None]], -1
    )
    return _mlp(tf.concat([attended(steps, mask(f, "user_history"), w), _flat(f, w)], 1), w)


def youtube(f: Features, w: Weights) -> Any:
    user = tf.concat([_pooled(f, w, "user_history"), w.table(f["user_id"]), f["user_age"]], 1)
    return tf.reduce_sum(w.dense(user, 8) * w.table(f["item_id"]), 1)


def two_tower_ragged(f: Features, w: Weights) -> Any:
    user = tf.reduce_mean(tf.gather(w(64, 8), f["user_seen"]), 1)
    item = tf.reduce_sum(tf.gather(w(64, 8), f["item_shops"]), 1) + w.table(f["item_id"])
    user = tf.where(tf.math.is_nan(user), 0.0, user)
    return tf.reduce_sum(w.dense(user, 8) * w.dense(item, 8), 1)


def neural_collaborative(f: Features, w: Weights) -> Any:
    user, item = w.table(f["user_id"]), w.table(f["item_id"])
    return _mlp(tf.concat([user * item, w.dense(tf.concat([user, item], 1))], 1), w)


def wide_and_deep(f: Features, w: Weights) -> Any:
    crossed = tf.sparse.cross_hashed([f["item_tags"], f["user_query"][:, None]], 64)
    wide = tf.nn.safe_embedding_lookup_sparse(w(64, 1), crossed, combiner="sum")
    return wide + _mlp(tf.concat([_flat(f, w), _pooled(f, w, "item_tags", "sqrtn")], 1), w)


def multi_task(f: Features, w: Weights) -> Any:
    shared = w.dense(_flat(f, w))
    return tf.concat([_mlp(shared, w) for _ in range(3)], 1)


def deep_cross(f: Features, w: Weights) -> Any:
    first = x = _flat(f, w)
    for _ in range(2):
        x = first * (x @ w(32, 32) + w(32)) + x
    return _mlp(x, w)


def deep_fm(f: Features, w: Weights) -> Any:
    fields = _fields(f, w)
    both = tf.square(tf.reduce_sum(fields, 1)) - tf.reduce_sum(tf.square(fields), 1)
    return tf.reduce_sum(both, 1, keepdims=True) + _mlp(tf.reshape(fields, [-1, 32]), w)


def compressed_interaction(f: Features, w: Weights) -> Any:
    fields = _fields(f, w)
    pairs = tf.reshape(tf.einsum("rhd,rmd->rhmd", fields, fields), [-1, 16, 8])
    return _mlp(tf.reduce_sum(tf.einsum("rpd,pk->rkd", pairs, w(16, 4)), 2), w)


def bilinear_excitation(f: Features, w: Weights) -> Any:
    fields = _fields(f, w)
    weights = w.dense(w.dense(tf.reduce_mean(fields, 2), 2), 4)
    scaled = fields * weights[..., None]
    pairs = [scaled[:, i] @ w(8, 8) * scaled[:, j] for i in range(4) for j in range(i)]
    return _mlp(tf.concat(pairs, 1), w)


def mixture_of_experts(f: Features, w: Weights) -> Any:
    x = _flat(f, w)
    experts = tf.stack([w.dense(x, 8) for _ in range(3)], 1)
    gates = [tf.nn.softmax(w.dense(x, 3, tf.identity)) for _ in range(2)]
    return tf.concat([_mlp(tf.einsum("re,red->rd", gate, experts), w) for gate in gates], 1)


def text_ranker(f: Features, w: Weights) -> Any:
    query, title = _words(f, w, "user_query"), _words(f, w, "item_title")
    return _mlp(tf.concat([query, title, query * title], 1), w)


def weighted_columns(f: Features, w: Weights) -> Any:
    tags = f["item_tags"]
    weights = tf.SparseTensor(tags.indices, f["item_weights"].values, tags.dense_shape)
    vectors = [
        tf.nn.safe_embedding_lookup_sparse(w(64, 8), tags, weights, combiner=combiner)
        for combiner in ("sum", "mean", "sqrtn")
    ]
    return _mlp(tf.concat([*vectors, _flat(f, w)], 1), w)


def short_lists(f: Features, w: Weights) -> Any:
    rows = tf.shape(f["item_id"], tf.int64)[0]
    last = tf.sparse.slice(f["user_history"], [0, 0], [rows, 3])
    return _mlp(tf.concat([tf.nn.safe_embedding_lookup_sparse(w(64, 8), last), _flat(f, w)], 1), w)


MODELS = [
    written_model(
        f"public_{score.__name__}", score, SPEC, "a public model", row=_row, recorded=True, **more
    )
    for score, more in (
        (dlrm, {}),
        (din, {"own_length": ("user_history",)}),
        (bst, {"own_length": ("user_history",)}),
        (sasrec, {"own_length": ("user_history",)}),
        (behaviour_sequence_with_times, {"own_length": ("user_history", "user_times")}),
        (youtube, {}),
        (two_tower_ragged, {}),
        (neural_collaborative, {}),
        (wide_and_deep, {"own_length": ("item_tags",)}),
        (multi_task, {}),
        (deep_cross, {}),
        (deep_fm, {}),
        (compressed_interaction, {}),
        (bilinear_excitation, {}),
        (mixture_of_experts, {}),
        (text_ranker, {"expected": Expected.LENGTH}),  # the number of words is no column
        (weighted_columns, {"expected": Expected.REFUSED}),
        (short_lists, {"own_length": ("user_history",)}),
    )
]
