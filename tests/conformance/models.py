"""Writes the models that the suite uses, and the configuration that serves them.

    python -m tests.conformance.models DIRECTORY [MODEL...]

makes DIRECTORY/MODEL/VERSION for each model, all of them by default, and DIRECTORY/models.config.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf
from colcast.export import export_saved_model
from tensorflow.core.protobuf import saved_model_pb2

from ..models.saving import save_graph

v1 = tf.compat.v1


# The model of TensorFlow Serving's documentation: y = x / 2 + 2, with all its signatures. They take
# the same inputs as TensorFlow Serving's half_plus_two: x itself, or tf.Examples with x and
# optionally x2. y2 is x / 2 + 3, and y3 is x2 / 2 + 3.
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
        save_graph(
            directory,
            session,
            {
                "serving_default": build_signature({"x": x}, {"y": y}, "predict"),
                "regress_x_to_y": build_signature({"inputs": examples}, {"outputs": y}, "regress"),
                "regress_x_to_y2": build_signature(
                    {"inputs": examples}, {"outputs": y2}, "regress"
                ),
                "regress_x2_to_y3": build_signature({"inputs": x2}, {"outputs": y3}, "regress"),
                "classify_x_to_y": build_signature({"inputs": examples}, {"scores": y}, "classify"),
            },
        )


# The conformance model has one signature for each corner of the expansion rule. Each combines a
# user's value and an item's with tf.stack, which refuses to broadcast, so a server that does not
# expand answers INVALID_ARGUMENT.


def column(dtype: tf.DType, *inner: int | None) -> tf.TensorSpec:
    """An input that has one value of shape `inner` per row."""
    return tf.TensorSpec([None, *inner], dtype)


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


def save_conformance(directory: Path) -> None:
    module = tf.Module()
    signatures = {
        "serving_default": score,
        "inner": inner,
        "fixed": fixed,
        "any_rank": any_rank,
        "late": late,
        "alone": alone,
        "defaults": score,
    }
    tf.saved_model.save(module, str(directory), signatures=signatures)
    set_default(directory / "saved_model.pb", "defaults", "user", [7.0])


def set_default(path: Path, signature: str, alias: str, row: list[float]) -> None:
    """Gives an input of a saved model a default of one row."""
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    default = tf.make_tensor_proto(row, tf.float32)
    model.meta_graphs[0].signature_def[signature].defaults[alias].CopyFrom(default)
    path.write_bytes(model.SerializeToString())


def save_half_plus_three(directory: Path) -> None:
    """TensorFlow Serving's half_plus_three, with the signatures that the REST API's page uses."""
    with v1.Graph().as_default(), v1.Session() as session:
        examples = v1.placeholder(tf.string, [None], name="tf_example")
        parsed = tf.io.parse_example(examples, {"x": tf.io.FixedLenFeature([1], tf.float32)})
        x = tf.identity(parsed["x"], name="x")
        y = v1.get_variable("a", initializer=0.5) * x + v1.get_variable("b", initializer=3.0)
        session.run(v1.global_variables_initializer())
        build = build_signature
        save_graph(
            directory,
            session,
            {
                "serving_default": build({"x": x}, {"y": y}, "predict"),
                "tensorflow/serving/regress": build(
                    {"inputs": examples}, {"outputs": y}, "regress"
                ),
            },
        )


class Tensors(tf.Module):
    """The inputs with which the REST API's page describes row and column format."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "tag"),
            tf.TensorSpec([None, 5], tf.int64, "signal"),
            tf.TensorSpec([None, 2, 2], tf.int64, "sensor"),
        ]
    )
    def echo(self, tag: tf.Tensor, signal: tf.Tensor, sensor: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns its inputs under other names."""
        return {"label": tag + "!", "total": tf.reduce_sum(signal, 1), "image_bytes": tag} | {
            "flipped": tf.reverse(sensor, [1])
        }


def save_tensors(directory: Path) -> None:
    module = Tensors()
    tf.saved_model.save(module, str(directory), signatures=module.echo)


class Ranker(tf.Module):
    """Scores a user's words and age together with an item; no row depends on another.

    Attributes:
        SPEC: the features of its tf.Examples.
    """

    SPEC: typing.ClassVar = {
        "user_age": tf.io.FixedLenFeature([], tf.float32),
        "user_words": tf.io.VarLenFeature(tf.string),
        "item_id": tf.io.FixedLenFeature([], tf.int64),
        "item_price": tf.io.FixedLenFeature([2], tf.float32),
    }

    def __init__(self) -> None:
        super().__init__()
        random = tf.random.Generator.from_seed(1)
        self.words, self.items, self.tower, self.top = (
            tf.Variable(random.normal(shape)) for shape in ([50, 8], [40, 8], [9, 8], [26, 1])
        )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        """Scores serialized examples."""
        columns = tf.io.parse_example(examples, self.SPEC)
        words = columns["user_words"]
        words = words.with_values(tf.strings.to_hash_bucket_fast(words.values, 50))
        words = tf.nn.safe_embedding_lookup_sparse(self.words, words, combiner="mean")
        age = tf.math.log1p(columns["user_age"])[:, None]
        user = tf.nn.relu(tf.concat([words, age], 1) @ self.tower)
        item = tf.gather(self.items, tf.math.floormod(columns["item_id"], 40))
        together = tf.concat([item, user, user * item, columns["item_price"]], 1)
        return {"score": tf.sigmoid(0.1 * together @ self.top)[:, 0]}


def save_ranker_of_examples(directory: Path) -> None:
    module = Ranker()
    tf.saved_model.save(module, str(directory), signatures=module.serve)


def save_ranker(directory: Path) -> None:
    """A ranker exported with late expansion, and the model from which it was made."""
    original = directory.parents[1] / "ranker_of_examples"
    save_ranker_of_examples(original)
    export_saved_model(original, directory, user_features=["user_*"], late=True, exact="always")


# Name -> version, and the function that writes the model.
MODELS: dict[str, tuple[int, Callable[[Path], None]]] = {
    "conformance": (1, save_conformance),
    "half_plus_two": (123, save_half_plus_two),
    "saved_model_half_plus_three": (123, save_half_plus_three),
    "tensors": (1, save_tensors),
    "ranker": (1, save_ranker),
}


def write(directory: Path, names: list[str]) -> None:
    """Writes the models of these names and their configuration."""
    entries = []
    for name in names:
        version, save = MODELS[name]
        save(directory / name / str(version))
        label = f' version_labels {{ key: "stable" value: {version} }}'
        entries.append(
            f'  config {{ name: "{name}" base_path: "{(directory / name).resolve()}" '
            f'model_platform: "tensorflow"{label} }}\n'
        )
    (directory / "models.config").write_text(f"model_config_list {{\n{''.join(entries)}}}\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    write(Path(sys.argv[1]), sys.argv[2:] or list(MODELS))
