"""Ranking models written in JAX; runs in .venv-jax: `jax_models.py OUTPUT`.

OUTPUT/NAME/model is a SavedModel; OUTPUT/rows.npz has the features of some rows, and JAX's scores
for them: `by_keras` and `by_hand`.
"""

import os
import sys
from pathlib import Path
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
import numpy as np
import tensorflow as tf
from jax.experimental import jax2tf
from keras import layers

PLAIN = {"native_serialization": False, "enable_xla": False}
"""The options by which jax2tf writes TensorFlow's own ops, up to JAX 0.6."""

USERS, ITEMS = 100, 200


def draw(rows: int) -> dict[str, Any]:
    random = np.random.default_rng(7)
    return {
        "user_id": random.integers(0, USERS, rows).astype(np.int32),
        "user_age": random.normal(size=(rows, 1)).astype(np.float32),
        "item_id": random.integers(0, ITEMS, rows).astype(np.int32),
        "price": random.normal(size=(rows, 1)).astype(np.float32),
    }


def by_keras() -> Any:
    """A functional Keras model, with JAX as Keras's backend."""
    keras.utils.set_random_seed(1)
    user = keras.Input([], name="user_id", dtype="int32")
    age = keras.Input([1], name="user_age")
    item = keras.Input([], name="item_id", dtype="int32")
    price = keras.Input([1], name="price")
    embedded = layers.Embedding(USERS, 16)(user), layers.Embedding(ITEMS, 16)(item)
    both = layers.Concatenate()([embedded[0], age, embedded[1], price])
    hidden = layers.Dense(32, activation="relu")(layers.Dense(64, activation="relu")(both))
    return keras.Model([user, age, item, price], {"scores": layers.Dense(1)(hidden)})


def weights() -> dict[str, Any]:
    shapes = {"users": (USERS, 16), "items": (ITEMS, 16), "hidden": (34, 64), "last": (64, 1)}
    random = np.random.default_rng(1)
    return {name: random.normal(size=s).astype(np.float32) for name, s in shapes.items()}


def by_hand(weights: Any, user_id: Any, user_age: Any, item_id: Any, price: Any) -> Any:
    """A model that is a plain JAX function."""
    columns = [weights["users"][user_id], user_age, weights["items"][item_id], price]
    return (jax.nn.relu(jnp.concatenate(columns, 1) @ weights["hidden"]) @ weights["last"])[:, 0]


def save_by_hand(folder: Path, **options: Any) -> None:
    shapes = [None, "(b,)", "(b, 1)", "(b,)", "(b, 1)"]
    score = jax2tf.convert(by_hand, polymorphic_shapes=shapes, with_gradient=False, **options)
    module = tf.Module()
    module.weights = tf.nest.map_structure(tf.Variable, weights())
    specs = [tf.TensorSpec([None, *v.shape[1:]], v.dtype, name) for name, v in draw(1).items()]

    @tf.function(autograph=False, input_signature=specs)
    def serve(user_id: Any, user_age: Any, item_id: Any, price: Any) -> Any:
        return {"scores": score(module.weights, user_id, user_age, item_id, price)}

    tf.saved_model.save(module, str(folder), signatures=serve)


def main(output: Path) -> None:
    model, columns = by_keras(), draw(60)
    scores = model(list(columns.values()))["scores"]
    expected = {"by_keras": scores, "by_hand": by_hand(weights(), **columns)}
    output.mkdir(exist_ok=True)
    np.savez(output / "rows.npz", **columns, **{k: np.array(v) for k, v in expected.items()})
    model.export(str(output / "by_keras" / "model"), verbose=False)
    plain = str(output / "by_keras_plain" / "model")
    model.export(plain, verbose=False, jax2tf_kwargs=dict(PLAIN))
    save_by_hand(output / "by_hand" / "model")
    save_by_hand(output / "by_hand_plain" / "model", **PLAIN)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
