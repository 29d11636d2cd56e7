"""Models whose candidates interact, each in a different way; tests/rows has more ops that mix."""

from typing import Any

import tensorflow as tf

from ._exact import WIDE, WIDTH, Build, Exact, Features, saver, spec_of
from ._model import RARE_COUNTRY, Expected, RankingModel

Outputs = dict[str, Any]
KEPT = 100  # more rows than most trials of an export have


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


def rare_country(m: Exact, f: Features) -> Outputs:
    score = m.score(f)
    rare = tf.equal(f["user_country"], RARE_COUNTRY)
    return {"score": tf.where(rare, tf.nn.softmax(score, axis=0), score)}


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


def _model(build: Build, why: str, *more: str, hidden: int = WIDTH) -> RankingModel:
    spec = spec_of(*more)
    name = build.__name__
    return RankingModel(name, saver(build, spec, hidden), spec, Expected.INTERACTING, why)


MODELS = [
    _model(softmax, "Softmax over the rows", hidden=WIDE),
    _model(keep_best, f"TopKV2 of {KEPT}: nothing happens with fewer rows", hidden=WIDE),
    _model(keep_cheapest, f"TopKV2 of {KEPT} over items alone"),
    _model(rare_country, "Softmax over the rows, for few users", "user_country"),
    _model(branch_on_country, "a branch on a user's value, taken for few", "user_country"),
    _model(unique_counts, "UniqueWithCounts of the rows", "item_shop"),
    _model(scalar_output, "an output without rows"),
    _model(one_row_output, "an output of one row"),
]
