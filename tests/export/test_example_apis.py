"""tf.Examples that are read as columns, through every API: the answers are the same bytes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import export_saved_model
from colcast.server import ServerProcess

from ..models.saving import save_graph
from ..server.metrics_page import Metrics
from .conftest import example
from .example_apis import CLASSIFY, REGRESS, answers

v1 = tf.compat.v1
PREDICT = "tensorflow/serving/predict"
SPEC = {
    "user_age": tf.io.FixedLenFeature([], tf.int64, default_value=30),
    "user_tags": tf.io.VarLenFeature(tf.string),
    "id": tf.io.FixedLenFeature([], tf.int64),
    "price": tf.io.FixedLenFeature([2], tf.float32, default_value=[0.5, 1.5]),
}
METHODS = {"serving_default": CLASSIFY, "regression": REGRESS, "predict": PREDICT}
INPUTS = {"serving_default": "inputs", "regression": "inputs", "predict": "examples"}


def save(folder: Path) -> None:
    """Saves three signatures that share a placeholder and a parse op, like an Estimator's."""
    with tf.Graph().as_default(), v1.Session() as session:
        examples = v1.placeholder(tf.string, [None], name="examples")
        parsed = tf.io.parse_example(examples, SPEC)
        ids = tf.gather(tf.random.stateless_normal([50, 3], seed=[1, 2]), parsed["id"])
        tags = tf.sparse.reduce_sum(
            tf.SparseTensor(
                parsed["user_tags"].indices,
                tf.cast(tf.strings.length(parsed["user_tags"].values), tf.float32),
                parsed["user_tags"].dense_shape,
            ),
            1,
        )
        tags = tf.reshape(tags, [-1, 1])
        age = tf.cast(parsed["user_age"], tf.float32)[:, None]
        scores = tf.sigmoid(ids + tf.tanh(tags + age) + parsed["price"][:, :1])
        labels = tf.tile(tf.constant([["a", "b", "c"]]), [tf.shape(ids)[0], 1])
        named = {"classes": labels, "scores": scores}

        def signature(name: str, outputs: Mapping[str, Any]) -> Any:
            infos = {key: v1.saved_model.build_tensor_info(value) for key, value in outputs.items()}
            given = {INPUTS[name]: v1.saved_model.build_tensor_info(examples)}
            return v1.saved_model.build_signature_def(given, infos, METHODS[name])

        signatures = {
            "serving_default": signature("serving_default", named),
            "regression": signature("regression", {"outputs": scores[:, 0]}),
            "predict": signature("predict", {**named, "age": age}),
        }
        save_graph(folder, session, signatures)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apis")
    save(folder / "model")
    export_saved_model(
        folder / "model",
        folder / "m" / "1",
        signatures=list(METHODS),
        user_features=["user_*"],
        warmup=[3],
        late=True,
    )
    return folder / "m"


def of_one_user(random: np.random.Generator, rows: int) -> list[bytes]:
    return [
        example(
            user_age=7, user_tags=[b"abc", b"d"], id=int(i), price=random.normal(size=2).tolist()
        )
        for i in random.integers(0, 50, rows)
    ]


def of_two_users(random: np.random.Generator, rows: int) -> list[bytes]:
    return [example(user_age=i % 2, id=i, price=[1.0, 2.0]) for i in range(rows)]


@pytest.mark.parametrize("draw", [of_one_user, of_two_users])
def test_every_api_gives_the_same_bytes(base, draw, monitoring_flags):
    rows = draw(np.random.default_rng(0), 9)
    with (
        ServerProcess("m", base, ["--rest_api_port=-1", "--example_transcoding=off"]) as parsing,
        ServerProcess("m", base, monitoring_flags) as reading,
    ):
        expected = answers(parsing, METHODS, INPUTS, rows)
        found = answers(reading, METHODS, INPUTS, rows)
        samples = Metrics(reading).samples
    assert len(expected) == 12
    for name, answer in expected.items():
        assert found[name] == answer, name
    counted = [s.value for s in samples if s.name == ":colcast:transcoded_requests_total"]
    assert sum(counted) == len(expected)
