"""The model of TensorFlow Serving's documentation: y = x / 2 + 2, with all its signatures.

The signatures take the same inputs as TensorFlow Serving's half_plus_two: x itself, or tf.Examples
with x and optionally x2. y2 is x / 2 + 3, and y3 is x2 / 2 + 3.
"""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

v1 = tf.compat.v1


def build_signature(
    inputs: dict[str, tf.Tensor], outputs: dict[str, tf.Tensor], method: str
) -> v1.saved_model.signature_def_utils.build_signature_def:
    """A SignatureDef with TensorFlow Serving's name for its method."""
    info = v1.saved_model.build_tensor_info
    return v1.saved_model.build_signature_def(
        {name: info(tensor) for name, tensor in inputs.items()},
        {name: info(tensor) for name, tensor in outputs.items()},
        f"tensorflow/serving/{method}",
    )


def save_half_plus_two(directory: Path) -> None:
    """Writes the SavedModel with the v1 builder, which records method names."""
    with v1.Graph().as_default(), v1.Session() as session:
        slope, two, three = (v1.get_variable(n, initializer=i) for n, i in
                             (("a", 0.5), ("b", 2.0), ("c", 3.0)))  # fmt: skip
        examples = v1.placeholder(tf.string, [None], name="tf_example")
        columns = tf.io.parse_example(
            examples,
            {
                "x": tf.io.FixedLenFeature([1], tf.float32),
                "x2": tf.io.FixedLenFeature([1], tf.float32, default_value=[0.0]),
            },
        )
        x, x2 = tf.identity(columns["x"], name="x"), tf.identity(columns["x2"], name="x2")
        y, y2, y3 = slope * x + two, slope * x + three, slope * x2 + three
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(directory))
        builder.add_meta_graph_and_variables(
            session,
            [v1.saved_model.tag_constants.SERVING],
            signature_def_map={
                "serving_default": build_signature({"x": x}, {"y": y}, "predict"),
                "regress_x_to_y": build_signature({"inputs": examples}, {"outputs": y}, "regress"),
                "regress_x_to_y2": build_signature(
                    {"inputs": examples}, {"outputs": y2}, "regress"
                ),
                "regress_x2_to_y3": build_signature({"inputs": x2}, {"outputs": y3}, "regress"),
                "classify_x_to_y": build_signature({"inputs": examples}, {"scores": y}, "classify"),
            },
        )
        builder.save()
