"""Rankers that read more than their request: variables, a clock, random numbers, a test's pipe."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

Columns = dict[str, Any]
INPUTS = [
    tf.TensorSpec([None, 4], tf.float32, "user_vector"),
    tf.TensorSpec([None, 4], tf.float32, "price"),
]


class _Ranker(tf.Module):
    """Interleaves a user's vector with an item's before a product."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.random.stateless_normal([8, 16], seed=[1, 2]))
        self.bias = tf.Variable(0.0)
        self.counter = tf.Variable(0.0)
        self.words = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)

    def score(self, user_vector: Any, price: Any) -> Any:
        columns = tf.concat([price[:, :2], user_vector, price[:, 2:]], 1)
        return tf.reduce_sum(tf.nn.relu(columns @ self.kernel), 1)


def _written_variable(ranker: _Ranker) -> tuple[Any, Any]:
    return lambda: ranker.bias, ranker.bias.assign


def _mutable_table(ranker: _Ranker) -> tuple[Any, Any]:
    key = tf.constant([7], tf.int64)
    return lambda: ranker.words.lookup(key), lambda x: ranker.words.insert(key, tf.reshape(x, [1]))


def _clock(ranker: _Ranker) -> tuple[Any, Any]:
    return lambda: tf.cast(tf.timestamp(), tf.float32), None


def _random(ranker: _Ranker) -> tuple[Any, Any]:
    return lambda: tf.random.uniform([]), None


def _counter(ranker: _Ranker) -> tuple[Any, Any]:
    return lambda: ranker.counter.assign_add(1.0), None


KINDS: Mapping[str, Callable[[_Ranker], tuple[Any, Any]]] = {
    "written_variable": _written_variable,
    "mutable_table": _mutable_table,
    "clock": _clock,
    "random": _random,
    "counter": _counter,
}
"""Kind -> makes a function for a term of the scores, and one that sets the term or None."""


def save(folder: Path, kind: str) -> None:
    """Saves a ranker; its signature `set`, if it has one, writes a term that the scores include."""
    ranker = _Ranker()
    term, write = KINDS[kind](ranker)

    @tf.function(input_signature=INPUTS)
    def serve(user_vector: Any, price: Any) -> Any:
        of_user = tf.reduce_sum(user_vector, 1) + term()  # a state of the user, which is cached
        return {"score": ranker.score(user_vector, price) + of_user}

    signatures = {"serving_default": serve}
    if write is not None:

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "value")])
        def set_term(value: Any) -> Any:
            with tf.control_dependencies([write(value)]):
                return {"value": tf.identity(value)}

        signatures["set"] = set_term
    tf.saved_model.save(ranker, str(folder), signatures=signatures)


def request(rows: int, seed: int = 0) -> Columns:
    """A request with one user and `rows` items."""
    random = np.random.default_rng(seed)
    return {
        "user_vector": random.normal(size=(1, 4)).astype(np.float32),
        "price": random.normal(size=(rows, 4)).astype(np.float32),
    }


v1 = tf.compat.v1


class Gate:
    """A pipe. A run that reads it waits until the test opens it, and then fails."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path

    def is_reached(self) -> bool:
        """Whether a run is waiting, or is about to."""
        return self.path.with_name(self.path.name + ".reached").exists()

    def open(self) -> None:
        """Releases the run that waits, or the next one."""
        self.path.write_bytes(b"")


def pass_gate(path: tf.Tensor) -> tf.Tensor:
    """Reads the file or pipe at `path`; returns its length, 0."""
    with tf.control_dependencies([tf.io.write_file(tf.strings.join([path, ".reached"]), "")]):
        return tf.cast(tf.strings.length(tf.io.read_file(path)), tf.float32)
