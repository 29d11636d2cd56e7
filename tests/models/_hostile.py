"""Models of lists with empty lists, NaN and infinities, in constructions that mislead a rule."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ._model import Expected, Random, Row
from ._weights import Features, Weights, written_model

SPEC = {
    "user_id": tf.io.FixedLenFeature([], tf.int64),
    "user_history": tf.io.VarLenFeature(tf.int64),
    "user_dwell": tf.io.VarLenFeature(tf.float32),  # as long as the history
    "user_words": tf.io.VarLenFeature(tf.string),
    "user_seen": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_price": tf.io.FixedLenFeature([], tf.float32, 1.0),
    "item_title": tf.io.FixedLenFeature([], tf.string, b""),
    "item_tags": tf.io.VarLenFeature(tf.int64),
    "item_scores": tf.io.VarLenFeature(tf.float32),  # as long as the tags
    "item_ratings": tf.io.RaggedFeature(tf.float32, row_splits_dtype=tf.int64),
    "item_steps": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
}
Lists = Callable[[Features, Weights], Any]  # returns [rows] or [rows, width]
_RARE = [float("nan"), float("inf"), float("-inf"), 0.0, 3e38]
_WORDS = [b"1", b"-2.5", b"inf", b"0", b"7"]
_TITLES = [b"red shoes", b"a blue blue coat", b"", b"hat"]


def _row(random: Random) -> Row:
    def floats(count: int) -> list[float]:
        drawn = (random.integers(-16, 17, count) / 4).tolist()
        return [_RARE[random.integers(5)] if random.random() < 0.1 else one for one in drawn]

    def count() -> int:
        return int(random.integers(0, 7)) if random.random() < 0.7 else 0

    history, tags = count(), count()
    return {
        "user_id": random.integers(0, 64, 1).tolist(),
        "user_history": random.integers(0, 64, history).tolist(),
        "user_dwell": floats(history),
        "user_words": [_WORDS[i] for i in random.integers(0, 5, count())],
        "user_seen": random.integers(0, 64, count()).tolist(),
        "item_id": random.integers(0, 8, 1).tolist(),
        "item_price": floats(1),
        "item_title": [_TITLES[random.integers(4)]],
        "item_tags": random.integers(0, 8, tags).tolist(),
        "item_scores": floats(tags),
        "item_ratings": floats(count()),
        "item_steps": floats(count()),
    }


def dense(f: Features, name: str, fill: Any = None) -> Any:
    return tf.sparse.to_dense(f[name], fill)


def mask(f: Features, name: str) -> Any:
    """1 where a list has a value."""
    return tf.cast(dense(f, name, -1) >= 0, tf.float32)


def _rows(f: Features) -> Any:
    return tf.shape(f["item_id"])[0]


def _of_rows(f: Features, name: str) -> tuple[Any, Any]:
    """The values of padded lists, and the row of each."""
    values = dense(f, name)
    rows = tf.repeat(tf.range(_rows(f)), tf.fill([_rows(f)], tf.shape(values)[1]))
    return tf.reshape(values, [-1]), rows


def _lengths(f: Features, name: str) -> Any:
    return tf.math.unsorted_segment_sum(
        tf.ones_like(f[name].values, tf.int32), f[name].indices[:, 0], _rows(f)
    )


def attended(steps: Any, there: Any, w: Weights) -> Any:
    """Self-attention over steps [rows, length, width], then their masked mean."""
    width = steps.shape[-1]
    q, k, v = (tf.tensordot(steps, w(width, 8), 1) for _ in range(3))
    fit = tf.matmul(q, k, transpose_b=True) / 3 + (1 - there[:, None]) * -1e9
    seen = tf.matmul(tf.nn.softmax(fit), v) * there[..., None]
    return tf.reduce_sum(seen, 1) / (tf.reduce_sum(there, 1, keepdims=True) + 1.0)


def _history_and_dwell(f: Features, w: Weights) -> Any:
    embedded = w.table(dense(f, "user_history"))
    both = tf.concat([embedded, dense(f, "user_dwell")[..., None]], -1)
    return attended(tf.where(tf.math.is_finite(both), both, 0.0), mask(f, "user_history"), w)


def _history_and_target(f: Features, w: Weights) -> Any:
    item = w.table(f["item_id"])[:, None]
    steps = tf.concat([w.table(dense(f, "user_history")), item], 1)
    there = tf.concat([mask(f, "user_history"), tf.ones_like(item[..., 0])], 1)
    return attended(steps, there, w)


def _with_positions(f: Features, w: Weights) -> Any:
    embedded = w.table(dense(f, "user_history"))
    return attended(embedded + w(8, 8)[: tf.shape(embedded)[1]], mask(f, "user_history"), w)


def _ragged_attention(f: Features, w: Weights) -> Any:
    seen, item = f["user_seen"], w.table(f["item_id"])
    keys, rows = w.table(seen.values), seen.value_rowids()
    fit = tf.exp(tf.reduce_sum(keys * tf.gather(item, rows), 1))
    total = tf.math.segment_sum(fit[:, None] * keys, rows)
    return tf.pad(total, [[0, _rows(f) - tf.shape(total)[0]], [0, 0]])


def _scattered(f: Features, w: Weights) -> Any:
    values, rows = _of_rows(f, "item_tags")
    places = tf.stack([rows, tf.cast(values % 4, tf.int32)], 1)
    return tf.scatter_nd(places, tf.ones_like(values, tf.float32), [_rows(f), 4]) @ w(4, 4)


def _counted(f: Features, w: Weights) -> Any:
    values, rows = _of_rows(f, "item_tags")
    counts = tf.math.unsorted_segment_sum(tf.ones_like(values, tf.int32), rows, _rows(f))
    return tf.gather(w(64, 4), counts)


def _binned(f: Features, w: Weights) -> Any:
    hot = tf.math.bincount(
        tf.cast(dense(f, "item_tags"), tf.int32), minlength=8, maxlength=8, axis=-1
    )
    return tf.ensure_shape(tf.cast(hot, tf.float32), [None, 8]) @ w(8, 4)


def _normalised(f: Features, w: Weights) -> Any:
    tags = w.table(dense(f, "item_tags"))
    mean, variance = tf.nn.moments(tags, [1, 2], keepdims=True)
    normal = (tags - mean) * tf.math.rsqrt(variance + 1e-3)
    return tf.reduce_sum(normal * mask(f, "item_tags")[..., None], 1)


def _distinct(f: Features, w: Weights) -> Any:
    found, index = tf.unique(f["item_tags"].values)
    vectors = tf.gather(w.table(found), index)
    return tf.math.unsorted_segment_sum(vectors, f["item_tags"].indices[:, 0], _rows(f))


def _weighted(f: Features, w: Weights, ids: str, weights: str, combiner: str) -> Any:
    of = f[ids]
    same = tf.SparseTensor(of.indices, f[weights].values, of.dense_shape)
    return tf.compat.v1.nn.safe_embedding_lookup_sparse(w(64, 8), of, same, combiner=combiner)


def _words(f: Features, w: Weights) -> Any:
    words = tf.strings.split(f["item_title"]).to_tensor("")
    there = tf.cast(words != "", tf.float32)[..., None]
    return tf.math.divide_no_nan(tf.reduce_sum(w.table(words) * there, 1), tf.reduce_sum(there, 1))


def _last(f: Features, w: Weights) -> Any:
    padded = tf.pad(dense(f, "user_history"), [[0, 0], [1, 0]])
    return w.table(tf.gather(padded, _lengths(f, "user_history"), batch_dims=1))


def _crossed(f: Features, w: Weights) -> Any:
    crossed = tf.sparse.cross_hashed([f["item_tags"], f["user_words"]], 64)
    return tf.nn.safe_embedding_lookup_sparse(w(64, 8), crossed, combiner="sum")


def _cut(f: Features, w: Weights) -> Any:
    there = mask(f, "user_history")[:, :3]
    return tf.reduce_sum(w.table(dense(f, "user_history")[:, :3]) * there[..., None], 1)


def _sliced(f: Features, w: Weights) -> Any:
    kept = tf.sparse.slice(f["user_history"], [0, 0], [tf.cast(_rows(f), tf.int64), 3])
    return tf.nn.safe_embedding_lookup_sparse(w(64, 8), kept, combiner="sum")


def _price(f: Features) -> Any:
    return f["item_price"][:, None]


# name -> the part of the score that reads lists, and what makes it hostile
_PARTS: dict[str, tuple[Lists, str]] = {
    "padding_times_price": (
        lambda f, w: tf.reduce_sum(dense(f, "item_scores") * _price(f), 1),
        "0 times infinity at the end of a list",
    ),
    "dwell_times_price": (
        lambda f, w: tf.reduce_sum(dense(f, "user_dwell") * _price(f), 1),
        "a user's padding times an item's infinity",
    ),
    "einsum_of_padding": (
        lambda f, w: tf.einsum("rl,r->r", dense(f, "item_scores"), f["item_price"]),
        "the same as an einsum",
    ),
    "matmul_of_padding": (
        lambda f, w: tf.matmul(
            dense(f, "item_scores")[:, None],
            tf.ones_like(dense(f, "item_scores"))[..., None] * _price(f)[..., None],
        )[:, 0],
        "the same as a product of matrices",
    ),
    "sequence_mask": (
        lambda f, w: tf.reduce_sum(
            tf.sequence_mask(
                _lengths(f, "item_scores"), tf.shape(dense(f, "item_scores"))[1], tf.float32
            )
            * tf.math.log(dense(f, "item_scores")),
            1,
        ),
        "0 times log(0)",
    ),
    "half_precision": (
        lambda f, w: tf.reduce_sum(
            tf.cast(tf.cast((1 - dense(f, "item_scores")) * 3e4, tf.float16), tf.float32)
            * mask(f, "item_tags"),
            1,
        ),
        "a cast that overflows",
    ),
    "words_to_numbers": (
        lambda f, w: tf.reduce_sum(
            tf.strings.to_number(dense(f, "user_words", b"0")) * _price(f), 1
        ),
        "inf among words, times 0",
    ),
    "largest_of_nothing": (
        lambda f, w: tf.reduce_max(
            tf.where(mask(f, "item_tags") > 0, dense(f, "item_scores"), -float("inf")), 1
        ),
        "-inf where a list is empty",
    ),
    "largest_score": (
        lambda f, w: tf.reduce_max(dense(f, "item_scores"), 1),
        "0 only where lists are padded",
    ),
    "mean_of_ragged": (lambda f, w: tf.reduce_mean(f["item_ratings"], 1), "NaN for an empty list"),
    "largest_of_ragged": (lambda f, w: tf.reduce_max(f["item_ratings"], 1), "-inf for none"),
    "ragged_times_price": (
        lambda f, w: tf.reduce_sum(f["item_ratings"].to_tensor() * _price(f), 1),
        "a padded ragged list",
    ),
    "ragged_cut": (
        lambda f, w: tf.reduce_sum(w.table(f["user_seen"][:, :3].to_tensor()), 1),
        "at most three of a list, padded",
    ),
    "ragged_attention": (_ragged_attention, "segments whose last rows are empty"),
    "counted_padding": (_counted, "segments of all entries"),
    "binned_padding": (_binned, "bincount of all entries"),
    "scattered_padding": (_scattered, "scatter of all entries"),
    "two_lists_side_by_side": (_history_and_dwell, "a transformer over two lists"),
    "list_and_target": (_history_and_target, "the item behind the user's list, in BST"),
    "positions_of_a_list": (_with_positions, "weights cut to the longest list, in SASRec"),
    "list_cut": (_cut, "the first three columns"),
    "sparse_slice": (_sliced, "the first three values"),
    "last_of_a_list": (_last, "gather at the length"),
    "weighted_column": (
        lambda f, w: _weighted(f, w, "user_history", "user_dwell", "mean"),
        "NaN and infinity as weights",
    ),
    "weighted_tags": (
        lambda f, w: _weighted(f, w, "item_tags", "item_scores", "sqrtn"),
        "the same of items",
    ),
    "crossed_lists": (_crossed, "every tag with every word of the user"),
    "best_two_scores": (
        lambda f, w: tf.math.top_k(tf.pad(dense(f, "item_scores"), [[0, 0], [0, 2]]), 2).values,
        "padding among the best",
    ),
    "sums_from_the_end": (
        lambda f, w: tf.cumsum(
            tf.pad(dense(f, "item_tags", -1), [[0, 0], [1, 0]]), 1, reverse=True
        )[:, 0],
        "padding of -1, summed from the end",
    ),
    "softmax_of_padding": (
        lambda f, w: tf.reduce_sum(
            tf.nn.softmax(tf.cast(dense(f, "item_tags"), tf.float32)) * mask(f, "item_tags"), 1
        ),
        "a softmax without a mask",
    ),
    "normalised_list": (_normalised, "mean and variance over padding"),
    "mean_of_steps": (lambda f, w: tf.reduce_mean(f["item_steps"], 1), "a list without a length"),
    "width_as_a_value": (
        lambda f, w: tf.cast(tf.fill([_rows(f)], tf.shape(dense(f, "item_tags"))[1]), tf.float32),
        "the longest list as a feature",
    ),
    "tags_that_match": (
        lambda f, w: tf.reduce_sum(
            tf.cast(dense(f, "item_tags") == f["item_id"][:, None], tf.float32), 1
        ),
        "padding that equals an id",
    ),
    "distinct_tags": (_distinct, "vectors of distinct values"),
    "title_words": (_words, "words of a title, split and averaged"),
}


def _score(part: Lists) -> Lists:
    def score(f: Features, w: Weights) -> Any:
        found = tf.cast(part(f, w), tf.float32)
        found = found[:, None] if found.shape.rank == 1 else found
        base = w.score(w.table(f["user_id"]), w.table(f["item_id"]))
        return base + tf.reduce_sum(found * w(max(found.shape[-1] or 1, 1)), 1)

    return score


# Models that must keep their stages, with the lists that a state or a reduction is as wide as.
_INDEPENDENT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(["mean_of_ragged", "largest_of_ragged", "distinct_tags"], ()),
    **dict.fromkeys(["sparse_slice", "last_of_a_list"], ("user_history",)),
    "crossed_lists": ("item_tags", "user_words"),
}
# Models of two lists that are equally long, which generated rows are not.
_EQUALLY_LONG = ("two_lists_side_by_side", "half_precision", "largest_of_nothing")

MODELS = [
    written_model(
        name,
        _score(part),
        SPEC,
        why,
        row=_row,
        expected=Expected.INDEPENDENT if name in _INDEPENDENT else Expected.LENGTH,
        own_length=_INDEPENDENT.get(name, ()),
        recorded=name in _EQUALLY_LONG,
    )
    for name, (part, why) in _PARTS.items()
]
