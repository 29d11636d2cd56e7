"""Models of TF-Ranking; runs in .venv-estimator, TensorFlow 2.15: `ranking_models.py OUTPUT`.

OUTPUT/NAME/model serves ExampleListWithContext; OUTPUT/NAME/lists holds recorded requests of one
list each; OUTPUT/NAME/scores.npz holds TF-Ranking's scores: `alone/I` for a single list and
`together/I` for the list padded to the longest of all.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_ranking as tfr

WORDS = [b"red", b"green", b"blue", b"unheard of"]
SIZES = (5, 1, 8, 3)

CONTEXT = {
    "user_age": tf.io.FixedLenFeature([1], tf.float32, default_value=[30.0]),
    "user_colors": tf.io.RaggedFeature(tf.string),
}
EXAMPLE = {
    "color": tf.io.FixedLenFeature([1], tf.string, default_value=[b""]),
    "price": tf.io.FixedLenFeature([1], tf.float32, default_value=[0.5]),
    "vector": tf.io.FixedLenFeature([3], tf.float32, default_value=[0.0] * 3),
}


def example(row: dict[str, list[Any]]) -> Any:
    proto = tf.train.Example()
    for name, values in row.items():
        feature = proto.features.feature[name]
        if values and isinstance(values[0], bytes):
            feature.bytes_list.value.extend(values)
        elif values:
            feature.float_list.value.extend(values)
    return proto


def draw_list(random: np.random.Generator, size: int) -> bytes:
    """A serialized ExampleListWithContext; some features are missing."""
    colors = [WORDS[i] for i in random.integers(0, len(WORDS), int(random.integers(0, 4)))]
    context = {"user_colors": colors}
    if random.random() < 0.7:
        context["user_age"] = [float(random.integers(18, 80))]
    parts = [(2, example(context))]
    for _ in range(size):
        row: dict[str, list[Any]] = {"vector": random.normal(size=3).tolist()}
        if random.random() < 0.7:
            row |= {"price": [float(random.random())], "color": [WORDS[random.integers(0, 4)]]}
        parts.append((1, example(row)))
    return b"".join(field(number, part.SerializeToString()) for number, part in parts)


def field(number: int, value: bytes) -> bytes:
    """A length-delimited field of a protobuf message."""
    length, size = bytearray(), len(value)
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + value


class Preprocessor(tfr.keras.model.Preprocessor):
    """Looks up strings, including those in the user's lists, and embeds them."""

    def __call__(self, context: Any, features: Any, mask: Any) -> Any:
        layers = tf.keras.layers
        lookup = layers.StringLookup(vocabulary=["red", "green", "blue"])
        colors = layers.Embedding(5, 4)(lookup(context["user_colors"]))
        age = (context["user_age"] - 40.0) / 10.0
        color = layers.Embedding(5, 4)(lookup(features["color"]))
        user = {"age": age, "colors": tf.reduce_mean(colors, axis=1)}
        user["colors"] = tf.where(tf.math.is_nan(user["colors"]), 0.0, user["colors"])
        items = {"color": tf.squeeze(color, 2), "price": features["price"]}
        return user, {**items, "vector": features["vector"]}


def build(scorer: Any) -> Any:
    """A model made of TF-Ranking's own layers."""
    builder = tfr.keras.model.ModelBuilder(
        tfr.keras.model.FeatureSpecInputCreator(CONTEXT, EXAMPLE),
        Preprocessor(),
        scorer,
        mask_feature_name="mask",
        name="ranker",
    )
    return builder.build()


def save(folder: Path, model: Any) -> None:
    """Saves a model, its requests and TF-Ranking's scores."""
    signatures = tfr.keras.saved_model.Signatures(model, CONTEXT, EXAMPLE, "mask")()
    tf.saved_model.save(model, str(folder / "model"), signatures=signatures)
    random = np.random.default_rng(1)
    lists = [draw_list(random, size) for size in SIZES]
    with tf.io.TFRecordWriter(str(folder / "lists")) as writer:
        for one in lists:
            writer.write(one)
    predict = tf.saved_model.load(str(folder / "model")).signatures["tensorflow/serving/predict"]
    (output,) = predict.structured_outputs
    scores = {f"alone/{i}": predict(tf.constant([one]))[output][0] for i, one in enumerate(lists)}
    for i, row in enumerate(predict(tf.constant(lists))[output]):
        scores[f"together/{i}"] = row[: SIZES[i]]
    np.savez(folder / "scores.npz", **scores)


def main(output: Path) -> None:
    """Saves a pointwise model and one that scores a list as a whole."""
    tf.keras.utils.set_random_seed(1)
    dnn = tfr.keras.model.DNNScorer(hidden_layer_dims=[16, 8], output_units=1, use_batch_norm=True)
    save(output / "pointwise", build(dnn))

    class Listwise(tfr.keras.model.Scorer):
        """Scores an example by how far it is from its list's mean."""

        def __call__(self, context: Any, features: Any, mask: Any) -> Any:
            items = tf.concat(list(features.values()), axis=-1)
            apart = items - tf.reduce_mean(items, axis=1, keepdims=True)
            return tf.squeeze(tf.keras.layers.Dense(1)(apart), axis=-1) + context["age"]

    save(output / "listwise", build(Listwise()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
