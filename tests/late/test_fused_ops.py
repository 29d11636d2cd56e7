"""What TensorFlow fuses is looked at all the same: activations and normalisations of many ops.

It fuses most of them where oneDNN is on, which is so by default on processors with AVX-512.
"""

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from colcast.export.cut import add_stages

from .conftest import variable


def _layer_norm(x: Any) -> Any:
    mean, variance = tf.nn.moments(x, [1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-3) * variable("gamma", 8) + variable("beta", 8)


FUSED: dict[str, Callable[[Any], Any]] = {
    "swish": lambda x: x * tf.sigmoid(x),
    "gelu": tf.nn.gelu,
    "approximate gelu": lambda x: tf.nn.gelu(x, approximate=True),
    "mish": lambda x: x * tf.tanh(tf.math.softplus(x)),
    "leaky relu": tf.nn.leaky_relu,
    "maximum": lambda x: tf.maximum(x, 0.1 * x),
    "layer norm": _layer_norm,
}


@pytest.mark.parametrize("name", FUSED)
def test_ops_that_are_fused_move_and_leave_scores_the_same(model: Any, name: str) -> None:
    def build(columns: dict[str, Any]) -> dict[str, Any]:
        with tf.compat.v1.variable_scope("user"):
            user = FUSED[name](tf.matmul(columns["age"], variable("w", 6, 8)) + variable("b", 8))
        with tf.compat.v1.variable_scope("item"):
            item = FUSED[name](tf.matmul(columns["price"], variable("w", 6, 8)) + variable("b", 8))
        return {"score": tf.reduce_sum(user * item, 1, keepdims=True)}

    built = model(build, {"age": (tf.float32, [6]), "price": (tf.float32, [6])}, ["age"])
    built.check()
    assert [tensor.how for tensor in built.report.frontier] == ["broadcast"]
    stages = add_stages(built.meta_graph, built.observed, rows=built.rows)
    assert [state.shape for state in stages.user_states] == [(1, 8)]
    assert [state.shape for state in stages.item_states] == [(1, 8)]
