"""Models whose candidates interact, each in a different way."""

from typing import Any

import tensorflow as tf

from ._exact import WIDE, WIDTH, Build, Exact, Features, saver, spec_of
from ._model import RARE_COUNTRY, RARE_LEVEL, Expected, RankingModel

Outputs = dict[str, Any]
KEPT = 100  # more rows than most trials of an export have


def _rows(f: Features) -> Any:
    return tf.shape(f["item_id"])[0]


def _count(f: Features) -> Any:
    return tf.cast(_rows(f), tf.float32)


def _best(values: Any) -> Any:
    """The lowest of the KEPT largest values."""
    return tf.math.top_k(values, tf.minimum(KEPT, tf.shape(values)[0])).values[-1]


def _ranks(values: Any) -> Any:
    order = tf.argsort(values, direction="DESCENDING", stable=True)
    return tf.cast(tf.math.invert_permutation(order), tf.float32)


def softmax(m: Exact, f: Features) -> Outputs:
    return {"share": tf.nn.softmax(m.score(f), axis=0)}


def sort(m: Exact, f: Features) -> Outputs:
    return {"sorted": tf.sort(m.score(f))}


def keep_best(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    return {"score": tf.where(score >= _best(score), score, -9.0)}


def keep_cheapest(m: Exact, f: Features) -> Outputs:
    price = f["item_price"] + tf.cast(f["item_id"], tf.float32)
    return {"score": tf.where(price >= _best(price), m.score(f), -9.0)}


def cumulative_sum(m: Exact, f: Features) -> Outputs:
    return {"score": m.score(f) + tf.cumsum(f["item_price"])}


def ranks(m: Exact, f: Features) -> Outputs:
    return {"score": m.score(f), "rank": _ranks(f["item_price"])}


def candidate_attention(m: Exact, f: Features) -> Outputs:
    item = m.embedded(m.items, f["item_id"])
    seen = tf.nn.softmax(tf.matmul(item, item, transpose_b=True) / 16) @ item
    return {"score": m.score(f) + tf.reduce_sum(seen, 1)}


def batch_norm(m: Exact, f: Features) -> Outputs:
    item = m.embedded(m.items, f["item_id"])
    shaped = item[:, None, None, :]
    ones = tf.ones([16])
    normal, *_ = tf.raw_ops.FusedBatchNormV3(
        x=shaped, scale=ones, offset=0 * ones, mean=[], variance=[], epsilon=0.01, is_training=True
    )
    return {"score": m.score(f) + tf.reduce_sum(normal, [1, 2, 3])}


def moments(m: Exact, f: Features) -> Outputs:
    mean, variance = tf.nn.moments(f["item_price"], axes=[0])
    return {"score": m.score(f) + (f["item_price"] - mean) * tf.math.rsqrt(variance + 0.5)}


def count(m: Exact, f: Features) -> Outputs:
    return {"score": m.score(f) * _count(f)}


def many_rows(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    return {"score": tf.where(_count(f) > KEPT, -score, score)}


def rare_country(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    rare = tf.equal(f["user_country"], RARE_COUNTRY)
    return {"score": tf.where(rare, tf.nn.softmax(score, axis=0), score)}


def rare_level(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    rare = tf.abs(f["user_level"] - RARE_LEVEL) < 0.5
    return {"score": tf.where(rare, _ranks(score), score)}


def branch_on_country(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    rare = tf.reduce_any(tf.equal(f["user_country"], RARE_COUNTRY))
    return {"score": tf.cond(rare, lambda: score - tf.reduce_max(score), lambda: score)}


def unique_counts(m: Exact, f: Features) -> Outputs:
    _, at, counts = tf.unique_with_counts(f["item_shop"])
    return {"score": m.score(f) + tf.cast(tf.gather(counts, at), tf.float32)}


def convolution(m: Exact, f: Features) -> Outputs:
    mixed = tf.nn.conv1d(m.score(f)[None, :, None], tf.constant([[[1.0]], [[2.0]]]), 1, "SAME")
    return {"score": mixed[0, :, 0]}


def backwards(m: Exact, f: Features) -> Outputs:
    return {"score": m.score(f) + f["item_price"][::-1]}


def first_row(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    return {"score": score - score[0]}


def shop_sum(m: Exact, f: Features) -> Outputs:
    shop = tf.cast(tf.math.floormod(f["item_shop"], 8), tf.int32)
    sums = tf.math.unsorted_segment_sum(f["item_price"], shop, 8)
    return {"score": m.score(f) + tf.gather(sums, shop)}


def row_number(m: Exact, f: Features) -> Outputs:
    number = tf.strings.as_string(tf.range(_rows(f)))
    return {"score": m.score(f) + tf.cast(tf.strings.to_hash_bucket_fast(number, 9), tf.float32)}


def scalar_output(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    return {"score": score, "total": tf.reduce_sum(score)}


def one_row_output(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    return {"score": score, "best": tf.reduce_max(score, keepdims=True)}


def constant_output(m: Exact, f: Features) -> Outputs:
    return {"score": m.score(f), "version": tf.constant([3.0])}


def _model(build: Build, why: str, *more: str, hidden: int = WIDTH) -> RankingModel:
    spec = spec_of(*more)
    name = build.__name__
    return RankingModel(name, saver(build, spec, hidden), spec, Expected.INTERACTING, why)


MODELS = [
    _model(softmax, "Softmax over the rows", hidden=WIDE),
    _model(sort, "row i of the output is another row's"),
    _model(keep_best, f"TopKV2 of {KEPT}: nothing happens with fewer rows", hidden=WIDE),
    _model(keep_cheapest, f"TopKV2 of {KEPT} over items alone"),
    _model(cumulative_sum, "Cumsum over the rows"),
    _model(ranks, "TopKV2 over the rows, as argsort has it", hidden=WIDE),
    _model(candidate_attention, "MatMul of rows with rows"),
    _model(batch_norm, "FusedBatchNormV3 in training mode"),
    _model(moments, "Mean over the rows"),
    _model(count, "Shape as a value"),
    _model(many_rows, "a number of rows compared, above what trials have"),
    _model(rare_country, "Softmax over the rows, for few users", "user_country"),
    _model(rare_level, "TopKV2 over the rows, for few users", "user_level"),
    _model(branch_on_country, "a branch on a user's value, taken for few", "user_country"),
    _model(unique_counts, "UniqueWithCounts of the rows", "item_shop"),
    _model(convolution, "Conv2D over the rows"),
    _model(backwards, "StridedSlice that turns the rows round"),
    _model(first_row, "StridedSlice of one row"),
    _model(shop_sum, "UnsortedSegmentSum over the rows", "item_shop"),
    _model(row_number, "Range of the number of rows"),
    _model(scalar_output, "an output without rows"),
    _model(one_row_output, "an output of one row"),
    _model(constant_output, "an output of one row that reads no input"),
]
