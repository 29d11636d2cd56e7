"""A model saved as by TFX's Trainer, exported as in docs/models.md, gets TensorFlow's scores."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.server import ServerProcess

from ..models.saving import serialized

keras, layers = tf.keras, tf.keras.layers
RAW = {
    "user_company": tf.io.VarLenFeature(tf.string),
    "user_hour": tf.io.VarLenFeature(tf.int64),
    "miles": tf.io.VarLenFeature(tf.float32),
    "latitude": tf.io.VarLenFeature(tf.float32),
    "payment": tf.io.VarLenFeature(tf.string),
}
WORDS = {"user_company": ["Yellow", "Blue", "Checker"], "payment": ["Cash", "Credit Card"]}
OUT_OF_VOCABULARY = 4


class Transform(tf.Module):
    """Does what a tf.Transform preprocessing_fn does: fills in, scales, looks up, buckets."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = {name: self._table(words) for name, words in WORDS.items()}

    def __call__(self, raw: Any) -> Any:
        filled = {name: self._filled(column) for name, column in raw.items()}
        buckets = tf.raw_ops.Bucketize(input=filled["latitude"], boundaries=[41.7, 41.8, 41.9])
        return {
            "user_hour_xf": tf.cast(filled["user_hour"], tf.int64),
            "miles_xf": (filled["miles"] - 3.1) / 5.2,
            "latitude_xf": tf.cast(buckets, tf.int64),
            **{f"{name}_xf": table.lookup(filled[name]) for name, table in self.tables.items()},
        }

    def _table(self, words: list[str]) -> Any:
        numbers = tf.range(len(words), dtype=tf.int64)
        made = tf.lookup.KeyValueTensorInitializer(tf.constant(words), numbers)
        return tf.lookup.StaticVocabularyTable(made, OUT_OF_VOCABULARY)

    def _filled(self, column: Any) -> Any:
        """An optional scalar as [rows]; 0 or '' stands for a missing value."""
        shape = [column.dense_shape[0], 1]
        default = "" if column.dtype == tf.string else tf.constant(0, column.dtype)
        one = tf.SparseTensor(column.indices, column.values, shape)
        return tf.squeeze(tf.sparse.to_dense(one, default), axis=1)


def wide_and_deep() -> Any:
    """A Keras model that takes the transformed features."""
    sizes = {"user_company_xf": 7, "payment_xf": 6, "latitude_xf": 4, "user_hour_xf": 24}
    inputs = {name: keras.Input([], name=name, dtype="int64") for name in sizes}
    inputs["miles_xf"] = miles = keras.Input([], name="miles_xf")
    deep = layers.Dense(8, activation="relu")(layers.Reshape([1])(miles))
    wide = [
        layers.CategoryEncoding(size, "one_hot")(layers.Reshape([1])(inputs[name]))
        for name, size in sizes.items()
    ]
    both = layers.Concatenate()([deep, *wide])
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid")(both))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has the model as TFX saves it, and its export."""
    keras.utils.set_random_seed(3)
    model = wide_and_deep()
    model.tft_layer = Transform()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve_tf_examples_fn(serialized_tf_examples: Any) -> Any:
        parsed_features = tf.io.parse_example(serialized_tf_examples, RAW)
        return {"outputs": model(model.tft_layer(parsed_features))}

    made = tmp_path_factory.mktemp("tfx")
    tf.saved_model.save(model, str(made / "model"), signatures=serve_tf_examples_fn)
    (report,) = export_saved_model(
        made / "model", made / "served" / "1", user_features=["user_*"], late=True
    ).signatures
    assert report.parity.identical
    assert report.stages.written
    assert report.independence["columnar"].rows
    return made


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[RankingClient]:
    with (
        ServerProcess("tfx", folder / "served") as server,
        RankingClient(server.target, "tfx") as client,
    ):
        yield client


@pytest.mark.parametrize("user", [{"user_company": "Blue", "user_hour": 7}, {"user_company": "?"}])
def test_scores_are_those_of_the_trainer_with_the_user_sent_once(
    folder: Path, client: RankingClient, user: dict[str, Any]
) -> None:
    random = np.random.default_rng(len(user))
    items: list[dict[str, Any]] = [
        {"miles": float(random.normal()), "latitude": 41.6 + 0.05 * i, "payment": "Cash"}
        for i in range(8)
    ]
    items[3] = {"latitude": 41.75}
    items[5] = {"miles": 2.0, "payment": "Barter"}
    examples = [serialized({**user, **item}) for item in items]
    source = tf.saved_model.load(str(folder / "model")).signatures["serving_default"]
    expected = source(tf.constant(examples))["outputs"].numpy()[:, 0]
    listed = [
        {name: [item[name]] if name in item else [] for name in ("miles", "latitude", "payment")}
        for item in items
    ]
    once = {name: [user[name]] if name in user else [] for name in ("user_company", "user_hour")}
    for target in ("columnar", "late"):
        given = client.rank(once, listed, target=target).scores
        np.testing.assert_allclose(np.ravel(given), expected, rtol=1e-5)
    np.testing.assert_array_equal(
        np.ravel(client.predict_examples(examples, target="example").scores), expected
    )
