"""Trains and exports Estimators; runs in .venv-estimator, TensorFlow 2.15: `estimators.py OUTPUT`.

OUTPUT/NAME/examples is the usual export, OUTPUT/NAME/columns the same model with columnar inputs.
`estimators.py score FILE OUTPUT/NAME...` scores the recorded examples with OUTPUT/NAME/converted/1.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.estimator import add_signature_defaults, columnar_serving_input_receiver_fn

column = tf.feature_column
WORDS = ["red", "green", "blue", "unheard of"]


def columns() -> dict[str, Any]:
    """Feature columns of every kind, by kind."""
    age = column.numeric_column("age", default_value=3.0)
    user = column.categorical_column_with_hash_bucket("user", 50)
    colors = column.categorical_column_with_vocabulary_list("colors", WORDS[:3], num_oov_buckets=1)
    place = column.categorical_column_with_identity("place", 8, default_value=0)
    buckets = column.bucketized_column(age, [-1.0, 0.5, 2.0])
    return {
        "age": age,
        "pair": column.numeric_column("pair", shape=[2]),
        "user": column.embedding_column(user, 4),
        "colors": column.embedding_column(colors, 3, combiner="sqrtn"),
        "place": column.indicator_column(place),
        "buckets": buckets,
        "crossed": column.crossed_column([buckets, "user"], 100),
        "weighted": column.weighted_categorical_column(place, "place_weight"),
    }


def estimators(model_dir: Path) -> Iterator[tuple[str, Any, Sequence[Any]]]:
    """Yields each Estimator's name, the Estimator, and its feature columns."""
    every = columns()
    dense = [every[name] for name in ("age", "pair", "user", "colors", "place", "buckets")]
    wide = [every["buckets"], every["crossed"], every["weighted"]]
    new, old = tf.estimator, tf.compat.v1.estimator

    def folder(name: str) -> str:
        return str(model_dir / name)

    yield "dnn", new.DNNClassifier([8, 4], dense, model_dir=folder("dnn")), dense
    yield "linear", new.LinearClassifier(wide, model_dir=folder("linear")), wide
    combined = new.DNNLinearCombinedRegressor(
        linear_feature_columns=wide,
        dnn_feature_columns=dense,
        dnn_hidden_units=[6],
        batch_norm=True,
        model_dir=folder("combined"),
    )
    yield "combined", combined, [*wide, *dense]
    yield "old_dnn", old.DNNClassifier([8], dense, model_dir=folder("old")), dense


def training_data() -> Any:
    """Random rows, the same for every Estimator."""
    random = np.random.default_rng(0)
    features = {
        "age": random.normal(size=(64, 1)).astype(np.float32),
        "pair": random.normal(size=(64, 2)).astype(np.float32),
        "user": random.choice(WORDS, (64, 1)),
        "colors": random.choice(WORDS, (64, 3)),
        "place": random.integers(0, 8, (64, 1)),
        "place_weight": random.random((64, 1)).astype(np.float32),
    }
    return tf.data.Dataset.from_tensors((features, random.integers(0, 2, (64, 1)))).repeat(10)


def build(output: Path) -> None:
    """Trains all Estimators, exports each in both ways, and writes examples for their specs."""
    for name, estimator, used in estimators(output / "training"):
        estimator.train(training_data)
        spec = column.make_parse_example_spec(used)
        parsing = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
        receivers = {"examples": parsing, "columns": columnar_serving_input_receiver_fn(spec)}
        for form, receiver in receivers.items():
            exported = estimator.export_saved_model(str(output / "raw"), receiver)
            if form == "columns":
                add_signature_defaults(exported, spec)
            shutil.move(tf.compat.as_str(exported), output / name / form)
        record(output / name / "recorded", spec)


def record(file: Path, spec: Any) -> None:
    """Writes random tf.Examples, in which some features are missing."""
    random = np.random.default_rng(1)
    with tf.io.TFRecordWriter(str(file)) as writer:
        for _ in range(200):
            writer.write(example(spec, random).SerializeToString())


def example(spec: Any, random: np.random.Generator) -> Any:
    """A random tf.Example; it has one weight for each of its places."""
    proto = tf.train.Example()
    feature = proto.features.feature
    places = int(random.integers(0, 3))
    for name, kind in spec.items():
        if isinstance(kind, tf.io.FixedLenFeature):
            if kind.default_value is None or random.random() < 0.8:
                values = random.normal(size=kind.shape[0]).astype(np.float32)
                feature[name].float_list.value.extend(values.tolist())
        elif name == "place":
            feature[name].int64_list.value.extend(random.integers(0, 8, places).tolist())
        elif name == "place_weight":
            feature[name].float_list.value.extend(random.random(places).tolist())
        else:
            words = random.choice(WORDS, int(random.integers(0, 4)))
            feature[name].bytes_list.value.extend(word.encode() for word in words)
    return proto


def score(folder: Path) -> dict[str, Any]:
    """Scores a model's recorded tf.Examples with the converted model's signature `predict`."""
    rows = list(tf.data.TFRecordDataset(str(folder / "recorded")).as_numpy_iterator())
    model = tf.saved_model.load(str(folder / "converted" / "1"))
    outputs = model.signatures["predict"](examples=tf.constant(rows))
    (name,) = {"logits", "predictions"} & set(outputs)
    columnar = model.signatures["columnar"].structured_input_signature[1]
    return {"outputs": {name: outputs[name].numpy().tolist()}, "columns": sorted(columnar)}


if __name__ == "__main__":
    if sys.argv[1] == "score":
        found = {Path(folder).name: score(Path(folder)) for folder in sys.argv[3:]}
        Path(sys.argv[2]).write_text(json.dumps(found))
    else:
        build(Path(sys.argv[1]))
