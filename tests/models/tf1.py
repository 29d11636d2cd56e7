"""TensorFlow 1 graphs: parameters without a shape, and variables that no checkpoint has."""

from pathlib import Path
from typing import Any

import tensorflow as tf

from .saving import save_graph

v1 = tf.compat.v1


def save_parameters(folder: Path) -> None:
    """Saves signatures that each take rows x [?,4] and one parameter of unknown rank."""

    @tf.function
    def nested(training: Any, x: Any) -> Any:
        return tf.cond(training, lambda: tf.cond(training, lambda: 0 * x, lambda: -x), lambda: x)

    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], "x")
        keep = v1.placeholder(tf.float32, None, "keep")
        training = v1.placeholder(tf.bool, None, "training")
        branch = v1.placeholder(tf.int32, None, "branch")
        times = v1.placeholder(tf.float32, None, "times")
        any_shape = [tf.TensorShape(None)]
        (count,) = tf.while_loop(
            lambda done: tf.less(done, times), lambda done: [done + 1], [0.0], any_shape
        )
        cases = [lambda: x, lambda: -x]
        made = {
            "serving_default": (
                {"x": x, "keep": keep, "training": training},
                tf.cond(training, lambda: 0 * x, lambda: keep * x),
            ),
            "nested": ({"x": x, "training": training}, nested(training, x)),
            "branches": ({"x": x, "branch": branch}, tf.switch_case(branch, cases)),
            "loop": ({"x": x, "times": times}, count * x),
        }
        signatures = {
            name: v1.saved_model.predict_signature_def(inputs, {"y": output})
            for name, (inputs, output) in made.items()
        }
        save_graph(folder, session, signatures)


def save_unsaved(folder: Path, resource: bool = False, saved: bool = False) -> None:
    """Saves a model of three times x; only its main op fills the local variable that it reads.

    Args:
      folder: the version's folder.
      resource: whether it is a resource variable.
      saved: whether the score also reads a second variable, with value 1, from the checkpoint.
    """
    with tf.Graph().as_default(), v1.Session() as session:
        local = [v1.GraphKeys.LOCAL_VARIABLES]
        scale: Any = v1.Variable(3.0, collections=local, use_resource=resource)
        if saved:
            scale = scale * v1.Variable(1.0, use_resource=resource)
        session.run(v1.global_variables_initializer())
        x = v1.placeholder(tf.float32, [None], "x")
        signature = v1.saved_model.predict_signature_def({"x": x}, {"score": x * scale})
        options = {"main_op": v1.local_variables_initializer()}
        save_graph(folder, session, {"serving_default": signature}, **options)
