"""Small ranking models that take plain tensors, saved in every way."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

layers = tf.keras.layers
Columns = dict[str, Any]

WORDS = np.array([b"red", b"green", b"blue", b"never seen before", b""], object)


def functional(folder: Path) -> None:
    """A Keras functional model: floats, embedded ids and a padded history; two outputs."""
    tf.keras.utils.set_random_seed(1)
    user = tf.keras.Input([4], name="user_vector")
    history = tf.keras.Input([None], name="user_history", dtype="int64")
    item = tf.keras.Input([], name="item", dtype="int32")
    price = tf.keras.Input([3], name="price")
    watched = layers.GlobalAveragePooling1D()(layers.Embedding(50, 8)(history))
    both = layers.Concatenate()([user, watched, layers.Embedding(40, 8)(item), price])
    hidden = layers.Dense(16, activation="relu")(layers.Dense(32, activation="relu")(both))
    click = layers.Dense(1, activation="sigmoid", name="click")(hidden)
    stay = layers.Dense(1, name="stay")(hidden)
    model = tf.keras.Model([user, history, item, price], {"click": click, "stay": stay})
    model.export(str(folder), verbose=False)


def archive(folder: Path) -> None:
    """An ExportArchive with two endpoints; `rank` is not the default one."""
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.Sequential([layers.Input([7]), layers.Dense(16, "relu"), layers.Dense(1)])

    def rank(user_vector: Any, item_vector: Any) -> Any:
        return {"scores": model(tf.concat([user_vector, item_vector], 1))[:, 0]}

    archive = tf.keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("embed", lambda x: model.layers[0](x), [tf.TensorSpec([None, 7])])
    archive.add_endpoint(
        "rank",
        rank,
        [
            tf.TensorSpec([None, 3], name="user_vector"),
            tf.TensorSpec([None, 4], name="item_vector"),
        ],
    )
    archive.write_out(str(folder), verbose=False)


def module(folder: Path) -> None:
    """A tf.Module whose inputs include a scalar, a fixed shape, strings and small integers."""
    model = tf.Module()
    model.table = tf.Variable(tf.random.stateless_normal([30, 8], seed=[4, 1]))
    model.kernel = tf.Variable(tf.random.stateless_normal([16, 1], seed=[4, 2]))

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "user_name"),
            tf.TensorSpec([None, 2], tf.uint8, "user_levels"),
            tf.TensorSpec([None], tf.float64, "price"),
            tf.TensorSpec([None], tf.bool, "is_new"),
            tf.TensorSpec([], tf.float32, "temperature"),
            tf.TensorSpec([8], tf.float32, "weights"),
        ]
    )
    def serve(
        user_name: Any, user_levels: Any, price: Any, is_new: Any, temperature: Any, weights: Any
    ) -> Any:
        name = tf.gather(model.table, tf.strings.to_hash_bucket_fast(user_name, 30)) * weights
        levels = tf.tile(tf.cast(user_levels, tf.float32), [1, 2])
        fresh = tf.where(is_new[:, None], [[1.0, 2.0]], [[0.5, 0.0]])
        prices = tf.cast(price, tf.float32)[:, None] * [[1.0, -1.0]]
        hidden = tf.concat([name, levels, fresh, prices], 1) @ model.kernel
        return {"scores": hidden[:, 0] / (1.0 + tf.abs(temperature)), "fresh": fresh}

    tf.saved_model.save(model, str(folder), signatures=serve)


MODELS: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "functional": (functional, "serving_default"),
    "archive": (archive, "rank"),
    "module": (module, "serving_default"),
}
"""Model -> the function that saves it, and its signature."""


def request(name: str, rows: int, seed: int = 0) -> Columns:
    """Random inputs of a model: one row for the user's, `rows` rows for the items'."""
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return random.normal(size=shape).astype(np.float32)

    return {
        "functional": lambda: {
            "user_vector": normal(1, 4),
            "user_history": random.integers(0, 50, (1, 5)),
            "item": random.integers(0, 40, rows).astype(np.int32),
            "price": normal(rows, 3),
        },
        "archive": lambda: {"user_vector": normal(1, 3), "item_vector": normal(rows, 4)},
        "module": lambda: {
            "user_name": random.choice(WORDS, 1),
            "user_levels": random.integers(0, 255, (1, 2)).astype(np.uint8),
            "price": random.normal(size=rows),
            "is_new": random.random(rows) < 0.5,
            "temperature": np.float32(0.5),
            "weights": normal(8),
        },
    }[name]()


def repeated(columns: Columns, rows: int) -> Columns:
    """The request with the user on every row."""
    return {
        name: np.repeat(column, rows, 0) if name.startswith("user_") else column
        for name, column in columns.items()
    }
