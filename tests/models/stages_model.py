"""A handwritten ranker that has stages like the exporter's signatures.

It has histories of any length, strings among the states, a context feature, and every dtype that
ranking requests usually have. `columnar` and `columnar_late` compute the same scores without
stages.
"""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.zoo.saving import independent, with_record

from .saving import save_graph

v1 = tf.compat.v1

WIDTH = 256
_USER = {"age": (tf.int64, []), "city": (tf.string, []), "history": (tf.int64, [None])}
_ITEM = {
    "id": (tf.int64, []),
    "title": (tf.string, []),
    "shape": (tf.float32, [2]),
    "tags": (tf.int64, [None]),  # values after `tags/length` are arbitrary
    "tags/length": (tf.int64, []),
}
_CONTEXT = {"position": (tf.float32, [])}
DOMAINS = {"user": tuple(_USER), "item": tuple(_ITEM), "candidate": tuple(_CONTEXT)}
COLUMNS = tuple(name for columns in DOMAINS.values() for name in columns)


def save(
    directory: Path,
    weight: float = 1.0,
    users_per_run: str = "many",
    numbered: bool = True,
    layers: int = 0,
) -> None:
    """Writes the model; a different weight gives different scores for the same request.

    Without `numbered`, the model is like one exported before users' rows had numbers. `layers` over
    the user's history make its state worth caching.
    """
    with tf.Graph().as_default(), v1.Session() as session:
        model = _Model(weight, layers)
        signatures = {
            "columnar": model.whole("columnar", None),
            "columnar_late": model.whole("columnar_late", 1),
            "columnar_user": model.user_stage(),
            "columnar_item": model.item_stage(),
            "columnar_pair": model.last_stage(users_per_run, numbered),
        }
        save_graph(directory, session, signatures)
    record = {
        "source_input": None,
        "late": {"signature": "columnar_late"},
        "parts": {"written": True, "users_per_run": users_per_run},
        "features": {"tags": {"kind": "var_len"}, "history": {"kind": "fixed_len_sequence"}},
        "independence": independent(*signatures),
    }
    with_record(directory, {"columnar": record})


def inputs(random: np.random.Generator, users: int, items: int, length: int = 3) -> dict[str, Any]:
    """Columns of `users` and `items` rows, whose few distinct values make rows repeat."""
    few = np.arange(12)
    ids = random.choice(few, items)
    return {
        "age": random.choice(few, users),
        "city": np.array([f"city {n}" for n in random.choice(few, users)], object),
        "history": random.choice(few, (users, length)),
        "id": ids,
        "title": np.array([f"title of item {n}, at some length" for n in ids], object),
        "shape": random.choice(few, (items, 2)).astype(np.float32),
        "tags": np.full((items, 2), 3),
        "tags/length": np.full(items, 2),
        "position": random.random(items).astype(np.float32),
    }


class _Model:
    def __init__(self, weight: float, layers: int) -> None:
        random = np.random.default_rng(7)
        self._weight = weight
        self._layers = layers
        self._table = tf.constant(random.normal(0, 1, (50, WIDTH)), tf.float32)
        self._shape_kernel = tf.constant(random.normal(0, 1, (2, WIDTH)), tf.float32)
        self._layer = tf.constant(random.normal(0, 0.1, (WIDTH, WIDTH)), tf.float32)

    def _user(self, age: Any, city: Any, history: Any) -> tuple[Any, Any]:
        embedded = tf.gather(self._table, age % 50)
        embedded += tf.gather(self._table, tf.strings.to_hash_bucket_fast(city, 50))
        if self._layers:
            behaviours = tf.gather(self._table, history % 50)  # [U, L, W]
            for _ in range(self._layers):
                behaviours = tf.tanh(tf.einsum("ulw,wv->ulv", behaviours, self._layer))
            embedded += tf.reduce_mean(behaviours, 1)
        return embedded, tf.gather(self._table[:, :4], history % 50)  # [U, W], [U, L, 4]

    def _item(self, id: Any, title: Any, shape: Any, **tags: Any) -> tuple[Any, Any]:
        embedded = tf.gather(self._table, id % 50) + tf.matmul(shape, self._shape_kernel)
        values, length = tags["tags"], tags["tags/length"]
        counts = tf.sequence_mask(length, tf.shape(values)[1], tf.float32)
        embedded += tf.reduce_sum(tf.gather(self._table, values % 50) * counts[:, :, None], 1)
        return embedded, tf.strings.upper(title)  # [I, W], [I]

    def _pair(self, user: Any, history: Any, item: Any, title: Any, position: Any) -> Any:
        attention = tf.reduce_sum(history * item[:, None, :4], axis=[1, 2])
        score = tf.reduce_sum(user * item, axis=1) + attention
        return {
            "score": self._weight * tf.sigmoid(score / 50) + position,
            "tag": tf.identity(title),
        }

    def whole(self, name: str, users: int | None) -> Any:
        """A signature without stages; `users` is the declared number of rows of user columns."""
        user = _placeholders(name, _USER, users)
        item = _placeholders(name, _ITEM)
        context = _placeholders(name, _CONTEXT)
        outputs = self._pair(*self._user(**user), *self._item(**item), **context)
        return v1.saved_model.predict_signature_def(user | item | context, outputs)

    def user_stage(self) -> Any:
        """The signature from user columns [U, ...] to states [U, ...]."""
        user = _placeholders("columnar_user", _USER)
        return v1.saved_model.predict_signature_def(user, _named("user_state", self._user(**user)))

    def item_stage(self) -> Any:
        """The signature from item columns [I, ...] to states [I, ...]."""
        item = _placeholders("columnar_item", _ITEM)
        return v1.saved_model.predict_signature_def(item, _named("item_state", self._item(**item)))

    def last_stage(self, users_per_run: str, numbered: bool) -> Any:
        """The signature from states, row_to_user and context columns to scores."""
        rows = {"row_to_user": v1.placeholder(tf.int64, [None], "columnar_pair/row_to_user")}
        states = {
            "user_state/0": v1.placeholder(tf.float32, [None, WIDTH], "columnar_pair/user_0"),
            "user_state/1": v1.placeholder(tf.float32, [None, None, 4], "columnar_pair/user_1"),
            "item_state/0": v1.placeholder(tf.float32, [None, WIDTH], "columnar_pair/item_0"),
            "item_state/1": v1.placeholder(tf.string, [None], "columnar_pair/item_1"),
        }
        context = _placeholders("columnar_pair", _CONTEXT)
        users = [states["user_state/0"], states["user_state/1"]]
        if numbered:
            rows["user_state/row"] = v1.placeholder(tf.int64, [None], "columnar_pair/user_row")
            right = tf.equal(rows["user_state/row"], _numbers(users[0]))
            right = tf.reduce_all(right)
            with tf.control_dependencies([tf.debugging.Assert(right, [rows["user_state/row"]])]):
                users = [tf.identity(state) for state in users]
        if users_per_run == "many":
            users = [tf.gather(state, rows["row_to_user"]) for state in users]
        items = [states["item_state/0"], states["item_state/1"]]
        outputs = self._pair(*users, *items, **context)
        return v1.saved_model.predict_signature_def(states | context | rows, outputs)


def _placeholders(prefix: str, columns: dict[str, Any], rows: int | None = None) -> dict[str, Any]:
    return {
        name: v1.placeholder(dtype, [rows, *inner], f"{prefix}/{name}")
        for name, (dtype, inner) in columns.items()
    }


def _numbers(states: Any) -> Any:
    """The row numbers 0 to U - 1."""
    return tf.range(tf.shape(states, tf.int64)[0])


def _named(name: str, states: tuple[Any, ...]) -> dict[str, Any]:
    return {f"{name}/{k}": state for k, state in enumerate(states)}
