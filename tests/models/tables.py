"""A model that reads its variables in all ways that could prevent mapping them."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from .saving import save_version

ROWS = 50
GATHERED = [
    *("by_handle", "by_value", "by_int32", "in_function", "of_lists", "in_condition"),
    "of_halves",
]
"""Signatures that only look up rows of their tables."""
OTHERWISE = {
    "whole": "MatMul",
    "written": "AssignAdd",
    "returned": "it is an output",
}
"""Signature -> how else it uses its table, as the server names it."""


def save(version: Path, seed: int = 0) -> None:
    """Saves a model in which each signature takes `ids` [N] and reads the table of its own name.

    `axis` reads columns of its table instead of rows.
    """
    random = np.random.default_rng(seed)

    def variable(name: str, *shape: int, dtype: Any = tf.float32) -> tf.Variable:
        return tf.Variable(tf.cast(random.normal(size=[ROWS, *(shape or (7,))]), dtype), name=name)

    module = tf.Module()
    # This one byte at the start gives all later tensors odd addresses in the file.
    module.aa = tf.Variable(tf.constant([1], tf.int8), name="aa")
    names = [*GATHERED, *OTHERWISE, "axis"]
    shapes = {"of_halves": (3, 2)}
    types = {"of_halves": tf.float16}
    tables = {
        name: variable(name, *shapes.get(name, ()), dtype=types.get(name, tf.float32))
        for name in names
    }
    module.tables = tables
    # This function reads a mapped table, and also a table that cannot be mapped.
    shared = tf.function(lambda table, ids: tf.gather(table, ids))
    inner = tf.function(lambda ids: tf.nn.embedding_lookup(tables["in_function"], ids))

    def of_lists(ids: Any) -> Any:
        sparse = tf.sparse.from_dense(tf.stack([ids + 1, ids + 1], 1))
        sparse = tf.sparse.map_values(lambda values: values - 1, sparse)
        return tf.nn.embedding_lookup_sparse(tables["of_lists"], sparse, None, combiner="mean")

    def whole(ids: Any) -> Any:
        rows = tf.nn.embedding_lookup(tables["whole"], ids)
        return rows + tf.matmul(tf.one_hot(ids, ROWS), tables["whole"])

    def written(ids: Any) -> Any:
        tables["written"].assign_add(tf.ones_like(tables["written"]))
        return tf.nn.embedding_lookup(tables["written"], ids)

    def in_condition(ids: Any) -> Any:
        return tf.cond(
            tf.size(ids) > 3,
            lambda: tf.gather(tables["in_condition"], ids),
            lambda: -tf.gather(tables["in_condition"], ids),
        )

    bodies = {
        "by_handle": lambda ids: tf.nn.embedding_lookup(tables["by_handle"], ids),
        "by_value": lambda ids: shared(tables["by_value"].read_value(), ids),
        "by_int32": lambda ids: tf.gather(
            tables["by_int32"].read_value(), tf.cast(tf.expand_dims(ids, 1), tf.int32)
        ),
        "in_function": inner,
        "of_lists": of_lists,
        "of_halves": lambda ids: tf.nn.embedding_lookup(tables["of_halves"], ids),
        "whole": whole,
        "written": written,
        "returned": lambda ids: tables["returned"].read_value(),
        "in_condition": in_condition,
        "axis": lambda ids: tf.transpose(tf.gather(tables["axis"], ids % 7, axis=1)),
    }
    spec = tf.TensorSpec([None], tf.int64, name="ids")
    save_version(
        version,
        module,
        {name: tf.function(body, input_signature=[spec]) for name, body in bodies.items()},
    )
