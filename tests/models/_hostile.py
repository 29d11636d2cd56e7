"""Models of lists with empty lists, NaN and infinities, in constructions that mislead a rule.

tests/rows has many more constructions, run by TensorFlow; these go through export and server.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ._model import Expected, Random, Row
from ._weights import Features, Weights, dense, written_model

SPEC = {
    "user_id": tf.io.FixedLenFeature([], tf.int64),
    "user_history": tf.io.VarLenFeature(tf.int64),
    "user_dwell": tf.io.VarLenFeature(tf.float32),  # as long as the history
    "user_words": tf.io.VarLenFeature(tf.string),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_price": tf.io.FixedLenFeature([], tf.float32, 1.0),
    "item_tags": tf.io.VarLenFeature(tf.int64),
    "item_scores": tf.io.VarLenFeature(tf.float32),
    "item_ratings": tf.io.RaggedFeature(tf.float32, row_splits_dtype=tf.int64),
}
Lists = Callable[[Features, Weights], Any]  # returns [rows] or [rows, width]
_RARE = [float("nan"), float("inf"), float("-inf"), 0.0, 3e38]
_WORDS = [b"1", b"-2.5", b"inf", b"0", b"7"]


def _row(random: Random) -> Row:
    def floats(count: int) -> list[float]:
        drawn = (random.integers(-16, 17, count) / 4).tolist()
        return [_RARE[random.integers(5)] if random.random() < 0.1 else one for one in drawn]

    def count() -> int:
        return int(random.integers(0, 7)) if random.random() < 0.7 else 0

    history = count()
    return {
        "user_id": random.integers(0, 64, 1).tolist(),
        "user_history": random.integers(0, 64, history).tolist(),
        "user_dwell": floats(history),
        "user_words": [_WORDS[i] for i in random.integers(0, 5, count())],
        "item_id": random.integers(0, 8, 1).tolist(),
        "item_price": floats(1),
        "item_tags": random.integers(0, 8, count()).tolist(),
        "item_scores": floats(count()),
        "item_ratings": floats(count()),
    }


def _rows(f: Features) -> Any:
    return tf.shape(f["item_id"])[0]


def _times_price(lists: Callable[[Features], Any]) -> Lists:
    return lambda f, w: tf.reduce_sum(lists(f) * f["item_price"][:, None], 1)


def _scattered(f: Features, w: Weights) -> Any:
    values = dense(f, "item_tags")
    rows = tf.repeat(tf.range(_rows(f)), tf.fill([_rows(f)], tf.shape(values)[1]))
    values = tf.reshape(values, [-1])
    places = tf.stack([rows, tf.cast(values % 4, tf.int32)], 1)
    return tf.scatter_nd(places, tf.ones_like(values, tf.float32), [_rows(f), 4]) @ w(4, 4)


def _distinct(f: Features, w: Weights) -> Any:
    found, index = tf.unique(f["item_tags"].values)
    vectors = tf.gather(w.table(found), index)
    return tf.math.unsorted_segment_sum(vectors, f["item_tags"].indices[:, 0], _rows(f))


def _weighted(f: Features, w: Weights) -> Any:
    of = f["user_history"]
    same = tf.SparseTensor(of.indices, f["user_dwell"].values, of.dense_shape)
    return tf.compat.v1.nn.safe_embedding_lookup_sparse(w(64, 8), of, same, combiner="mean")


def _last(f: Features, w: Weights) -> Any:
    history = f["user_history"]
    lengths = tf.math.unsorted_segment_sum(
        tf.ones_like(history.values, tf.int32), history.indices[:, 0], _rows(f)
    )
    padded = tf.pad(dense(f, "user_history"), [[0, 0], [1, 0]])
    return w.table(tf.gather(padded, lengths, batch_dims=1))


def _crossed(f: Features, w: Weights) -> Any:
    crossed = tf.sparse.cross_hashed([f["item_tags"], f["user_words"]], 64)
    return tf.nn.safe_embedding_lookup_sparse(w(64, 8), crossed, combiner="sum")


def _sliced(f: Features, w: Weights) -> Any:
    kept = tf.sparse.slice(f["user_history"], [0, 0], [tf.cast(_rows(f), tf.int64), 3])
    return tf.nn.safe_embedding_lookup_sparse(w(64, 8), kept, combiner="sum")


def _score(part: Lists) -> Lists:
    def score(f: Features, w: Weights) -> Any:
        found = tf.cast(part(f, w), tf.float32)
        found = found[:, None] if found.shape.rank == 1 else found
        base = w.score(w.table(f["user_id"]), w.table(f["item_id"]))
        return base + tf.reduce_sum(found * w(max(found.shape[-1] or 1, 1)), 1)

    return score


HISTORY = ("user_history",)
_SCORES = _times_price(lambda f: dense(f, "item_scores"))
_DWELL = _times_price(lambda f: dense(f, "user_dwell"))
_RATINGS = _times_price(lambda f: f["item_ratings"].to_tensor())
# name -> the part of the score that reads lists, what makes it hostile and, for models that must
# keep their stages, the lists that a state or a reduction is as wide as.
_PARTS: dict[str, tuple[Lists, str, tuple[str, ...] | None]] = {
    "padding_times_price": (_SCORES, "0 times infinity at the end of a list", None),
    "dwell_times_price": (_DWELL, "a user's padding times an item's infinity", None),
    "ragged_times_price": (_RATINGS, "a padded ragged list", None),
    "scattered_padding": (_scattered, "scatter of all entries", None),
    "weighted_column": (_weighted, "NaN and infinity as weights", None),
    "mean_of_ragged": (
        lambda f, w: tf.reduce_mean(f["item_ratings"], 1),
        "NaN for an empty list",
        (),
    ),
    "distinct_tags": (_distinct, "vectors of distinct values", ()),
    "sparse_slice": (_sliced, "the first three values", HISTORY),
    "last_of_a_list": (_last, "gather at the length", HISTORY),
    "crossed_lists": (
        _crossed,
        "every tag with every word of the user",
        ("item_tags", "user_words"),
    ),
}

MODELS = [
    written_model(
        name,
        _score(part),
        SPEC,
        why,
        row=_row,
        expected=Expected.LENGTH if own is None else Expected.INDEPENDENT,
        own_length=own or (),
    )
    for name, (part, why, own) in _PARTS.items()
]
