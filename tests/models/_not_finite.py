"""Models that compute NaN for some rows, or in which one value decides for all rows."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from ._model import Expected, RankingModel, Row, row_of
from ._weights import HISTORY, SPEC, Features, Weights, written_model
from .saving import save_graph

v1 = tf.compat.v1
TITLES = {
    "user_id": tf.io.FixedLenFeature([], tf.int64),
    "item_title": tf.io.FixedLenFeature([], tf.string),
    "item_price": tf.io.FixedLenFeature([2], tf.float32, [1.0, 2.0]),
}


def _of_price(function: Callable[[Any], Any], f: Features, w: Weights) -> Any:
    """A ranker that applies a function to the item's price, undefined for some prices."""
    return w.score(w.table(f["user_id"]), w.table(f["item_id"]), function(f["item_price"]))


def _average(vectors: Any, mask: Any) -> Any:
    """The mean as GlobalAveragePooling1D computes it: 0 / 0 for an empty list."""
    mask = tf.cast(mask, tf.float32)[:, :, None]
    return tf.reduce_sum(vectors * mask, 1) / tf.reduce_sum(mask, 1)


def _empty_title(f: Features, w: Weights) -> Any:
    words = tf.strings.split(f["item_title"]).to_tensor("", shape=[None, 4])
    title = _average(w.table(words), words != "")
    return w.score(w.table(f["user_id"]), title, f["item_price"])


def _empty_history(f: Features, w: Weights) -> Any:
    history = tf.sparse.to_dense(f["user_history"], -1)
    user = _average(w.table(tf.maximum(history, 0)), history >= 0)
    return w.score(user, w.table(f["item_id"]), f["item_price"])


def _between_both(f: Features, w: Weights) -> Any:
    far = tf.sqrt(f["user_age"] - f["item_price"])
    return w.score(w.table(f["user_id"]), w.table(f["item_id"]), far)


def _no_bias(f: Features, w: Weights) -> Any:
    x = tf.concat([w.table(f["user_id"]), tf.sqrt(f["item_price"])], 1)
    hidden = tf.nn.relu(tf.matmul(x, w(10, 16)))
    return w.dense(hidden, 1, tf.identity)[:, 0]


def _one_unit(f: Features, w: Weights) -> Any:
    x = tf.concat([w.table(f["user_id"]), tf.math.log(f["item_price"])], 1)
    return w.dense(x, 1)[:, 0]


def _sum_of_products(f: Features, w: Weights) -> Any:
    user = tf.matmul(w.table(f["user_id"]), w(8, 16))
    item = tf.matmul(tf.concat([w.table(f["item_id"]), tf.sqrt(f["item_price"])], 1), w(10, 16))
    return w.dense(tf.nn.relu(user + item), 1, tf.identity)[:, 0]


def _rare_branch(f: Features, w: Weights) -> Any:
    score = w.score(w.table(f["user_id"]), w.table(f["item_id"]), f["item_price"])
    rare = tf.reduce_any(f["item_price"] == 3.75)
    return tf.cond(rare, lambda: score - tf.reduce_max(score), lambda: score)


def _with(spec: Any, name: str, rare: Any, random: Any) -> Row:
    """A row in which a feature has a rare value, with probability 0.1."""
    row = row_of(spec, random)
    if random.random() < 0.1:
        row[name] = [rare] * len(row[name])
    return row


def _save_switched(folder: Path) -> None:
    """A TensorFlow 1 model in which a placeholder of unknown rank turns training on."""
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(3)
        examples = v1.placeholder(tf.string, [None], "examples")
        parsed = v1.parse_example(examples, SPEC)
        training = v1.placeholder_with_default(False, None, "training")
        table = v1.get_variable("table", [64, 8])
        ids = (tf.gather(table, parsed[name] % 64) for name in ("user_id", "item_id"))
        x = tf.concat([*ids, parsed["item_price"]], 1)
        hidden = tf.nn.relu(tf.matmul(x, v1.get_variable("first", [18, 16])))
        hidden = v1.cond(training, lambda: 0.5 * hidden, lambda: hidden)
        scores = {"score": tf.matmul(hidden, v1.get_variable("last", [16, 1]))}
        session.run(v1.global_variables_initializer())
        signature = v1.saved_model.predict_signature_def({"examples": examples}, scores)
        save_graph(folder, session, {"serving_default": signature})


_OF_PRICE: dict[str, Callable[[Any], Any]] = {
    "nan_log1p": tf.math.log1p,
    "nan_square_root": tf.sqrt,
    "nan_zero_count": lambda price: price / tf.round(price[:, ::-1]),
    "nan_inf_minus_inf": lambda price: tf.math.log(price) - tf.math.log(price[:, ::-1]),
}
_TITLE = partial(_with, TITLES, "item_title", b"")
_NAN = partial(_with, SPEC, "item_price", float("nan"))

MODELS = [
    *(
        written_model(name, partial(_of_price, function), SPEC, "each row its own, some NaN inside")
        for name, function in _OF_PRICE.items()
    ),
    written_model("nan_empty_title", _empty_title, TITLES, "the mean of no words", row=_TITLE),
    written_model(
        "nan_empty_history",
        _empty_history,
        HISTORY,
        "the mean of a user's empty list",
        own_length=("user_history",),
    ),
    written_model("nan_between_both", _between_both, SPEC, "of user and item together"),
    written_model("nan_no_bias", _no_bias, SPEC, "a product without a bias: its NaN stays"),
    written_model("nan_one_unit", _one_unit, SPEC, "a Relu is the score"),
    written_model("nan_sum_of_products", _sum_of_products, SPEC, "a sum that is not fused"),
    written_model(
        "nan_in_item_price", partial(_of_price, tf.identity), SPEC, "sent by a client", row=_NAN
    ),
    written_model(
        "rare_branch", _rare_branch, SPEC, "a branch for all", expected=Expected.INTERACTING
    ),
    RankingModel(
        "switched_off", _save_switched, SPEC, Expected.REFUSED, "a branch that is never taken"
    ),
]
