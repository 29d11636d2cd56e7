"""Models without lists, each with a different way of combining user and item."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ._weights import Features, keras_model

layers = tf.keras.layers
SPEC = {
    "user_id": tf.io.FixedLenFeature([], tf.int64),
    "user_country": tf.io.FixedLenFeature([], tf.string, b"DE"),
    "item_id": tf.io.FixedLenFeature([], tf.int64),
    "item_price": tf.io.FixedLenFeature([2], tf.float32, [1.0, 2.0]),
}
Score = Callable[[Features], Any]


def _tables() -> Score:
    """A ranker of the embeddings of user, country and item, stacked as [rows, 3, 8]."""
    user, country, item = (layers.Embedding(64, 8, "normal") for _ in range(3))

    def fields(f: Features) -> Any:
        hashed = tf.strings.to_hash_bucket_fast(f["user_country"], 64)
        return tf.stack([user(f["user_id"]), country(hashed), item(f["item_id"])], 1)

    return fields


def two_towers() -> Score:
    fields, of_user, of_item = _tables(), layers.Dense(16, "relu"), layers.Dense(16, "relu")

    def score(f: Features) -> Any:
        embedded = fields(f)
        user = of_user(tf.reshape(embedded[:, :2], [-1, 16]))
        item = of_item(tf.concat([embedded[:, 2], f["item_price"]], 1))
        return tf.reduce_sum(tf.math.l2_normalize(user, 1) * tf.math.l2_normalize(item, 1), 1)

    return score


def pointwise() -> Score:
    fields, norm = _tables(), layers.BatchNormalization(moving_variance_initializer="uniform")
    first, drop, last = layers.Dense(1024, "relu"), layers.Dropout(0.1), layers.Dense(1)

    def score(f: Features) -> Any:
        both = tf.concat([tf.reshape(fields(f), [-1, 24]), f["item_price"]], 1)
        return last(drop(first(norm(both))))

    return score


def interleaved() -> Score:
    """A ranker that interleaves the user's and the item's columns before a product."""
    user, country, item = (layers.Embedding(64, 8, "normal") for _ in range(3))
    norm = layers.BatchNormalization()
    first, last = layers.Dense(32, "relu"), layers.Dense(1)

    def score(f: Features) -> Any:
        hashed = tf.strings.to_hash_bucket_fast(f["user_country"], 64)
        of_user = [user(f["user_id"]), country(hashed)]
        both = tf.concat([of_user[0], f["item_price"], of_user[1], item(f["item_id"])], 1)
        return last(first(norm(both)))[:, 0]

    return score


def factorization_machine() -> Score:
    fields, linear = _tables(), layers.Dense(1)

    def score(f: Features) -> Any:
        embedded = fields(f)
        squared = tf.square(tf.reduce_sum(embedded, 1)) - tf.reduce_sum(tf.square(embedded), 1)
        return 0.5 * tf.reduce_sum(squared, 1) + linear(f["item_price"])[:, 0]

    return score


def cross_network() -> Score:
    crosses, norm = [layers.Dense(26) for _ in range(2)], layers.LayerNormalization()
    fields, last = _tables(), layers.Dense(1)

    def score(f: Features) -> Any:
        first = x = tf.concat([tf.reshape(fields(f), [-1, 24]), f["item_price"]], 1)
        for cross in crosses:
            x = first * cross(x) + x
        return tf.sigmoid(last(norm(x)))[:, 0]

    return score


def product_network() -> Score:
    fields, last = _tables(), layers.Dense(1)

    def score(f: Features) -> Any:
        embedded = fields(f)
        products = tf.matmul(embedded, embedded, transpose_b=True)
        flat = tf.concat([tf.reshape(embedded, [-1, 24]), tf.reshape(products, [-1, 9])], 1)
        return last(tf.nn.gelu(flat))[:, 0]

    return score


def experts() -> Score:
    fields, gate = _tables(), layers.Dense(3, "softmax")
    towers = [layers.Dense(4, "tanh") for _ in range(3)]

    def score(f: Features) -> Any:
        flat = tf.reshape(fields(f), [-1, 24])
        chosen = tf.math.top_k(gate(flat), 2)
        each = tf.stack([tower(flat) for tower in towers], 1)
        kept = tf.gather(each, chosen.indices, batch_dims=1)
        return tf.reduce_sum(kept * chosen.values[:, :, None], [1, 2])

    return score


MODELS = [
    keras_model(two_towers, SPEC, "normalised within a row"),
    keras_model(pointwise, SPEC, "batch normalisation by moving statistics; one score per row"),
    keras_model(interleaved, SPEC, "a split product, rows of its kernel in turn"),
    keras_model(factorization_machine, SPEC, "sums over fields"),
    keras_model(cross_network, SPEC, "products of a row with itself"),
    keras_model(product_network, SPEC, "a product of matrices per row"),
    keras_model(experts, SPEC, "TopKV2 and softmax over experts"),
]
