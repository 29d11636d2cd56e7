"""The model the conformance suite talks to: one signature for each corner of the expansion rule.

Every signature puts a user's value beside an item's with tf.stack, which refuses to broadcast: a
server that does not expand answers INVALID_ARGUMENT.
"""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

DTYPES = (
    tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128,
    tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64,
    tf.bool, tf.string, tf.qint8, tf.qint16, tf.qint32, tf.quint8, tf.quint16,
)  # fmt: skip


def column(dtype: tf.DType, *inner: int | None) -> tf.TensorSpec:
    """An input with one value of shape `inner` a row."""
    return tf.TensorSpec([None, *inner], dtype)


def pair(dtype: tf.DType) -> tf.types.experimental.ConcreteFunction:
    @tf.function(input_signature=[column(dtype), column(dtype)])
    def pair_of_one_dtype(user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"pair": tf.stack([user, item], axis=1)}

    return pair_of_one_dtype.get_concrete_function()


@tf.function(input_signature=[column(tf.float32), column(tf.float32)])
def score(user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
    both = tf.stack([user, item], axis=1)
    return {"score": tf.reduce_sum(both * [100.0, 1.0], axis=1), "item": item + 0.0}


@tf.function(input_signature=[column(tf.float32, 3), column(tf.int64, None), column(tf.float32)])
def inner(vector: tf.Tensor, history: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
    clicks = tf.cast(tf.reduce_sum(history, axis=1), tf.float32)
    weighted = tf.linalg.matvec(vector, tf.constant([1.0, 10.0, 100.0]))
    return {"parts": tf.stack([weighted, clicks, item], axis=1)}


@tf.function(
    input_signature=[
        tf.TensorSpec([], tf.float32),
        tf.TensorSpec([2], tf.float32),
        column(tf.float32),
        column(tf.float32),
    ]
)
def fixed(
    scale: tf.Tensor, weights: tf.Tensor, user: tf.Tensor, item: tf.Tensor
) -> dict[str, tf.Tensor]:
    both = tf.stack([user, item], axis=1)
    return {"score": scale * tf.linalg.matvec(both, weights)}


@tf.function(input_signature=[tf.TensorSpec(None, tf.float32), column(tf.float32)])
def any_rank(user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"shape": tf.shape(user), "item": item + 0.0}


@tf.function(input_signature=[tf.TensorSpec([1], tf.float32), column(tf.float32)])
def late(user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
    users = tf.repeat(user, tf.shape(item)[0])
    return {"score": tf.reduce_sum(tf.stack([users, item], axis=1) * [100.0, 1.0], axis=1)}


@tf.function(input_signature=[column(tf.float32, 1)])
def alone(x: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"y": 0.5 * x + 2.0}


def save(directory: Path) -> None:
    """Writes the SavedModel."""
    module = tf.Module()
    signatures = {
        "serving_default": score,
        "inner": inner,
        "fixed": fixed,
        "any_rank": any_rank,
        "late": late,
        "alone": alone,
        "defaults": score,
        **{f"pair_{dtype.name}": pair(dtype) for dtype in DTYPES},
    }
    tf.saved_model.save(module, str(directory), signatures=signatures)
    set_default(directory / "saved_model.pb", "defaults", "user", [7.0])


def set_default(path: Path, signature: str, alias: str, row: list[float]) -> None:
    """Gives an input of a written model a default of one row."""
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    default = tf.make_tensor_proto(row, tf.float32)
    model.meta_graphs[0].signature_def[signature].defaults[alias].CopyFrom(default)
    path.write_bytes(model.SerializeToString())
