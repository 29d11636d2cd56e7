"""tf.Examples that are read as columns, through every API: the answers are the same bytes."""

import base64
import json
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.export import export_saved_model
from colcast.server import ServerProcess
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    input_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from ..models.saving import save_graph
from ..server.metrics_page import Metrics
from .conftest import example

v1 = tf.compat.v1
CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"
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


def answers(server: ServerProcess, rows: Sequence[bytes]) -> dict[str, Any]:
    """Calls model "m" through every API; returns the answers' bytes by API and signature."""
    stub = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel(server.target))
    given = {"list": _list(rows), "context": _with_context(rows)}
    found: dict[str, Any] = {}
    for name, method in METHODS.items():
        predict = predict_pb2.PredictRequest()
        predict.inputs[INPUTS[name]].CopyFrom(tf.make_tensor_proto(np.array(rows, object)))
        found[f"predict {name}"] = _call(stub.Predict, predict, name)
        found[f"rest {name}"] = _rest(server, f"{name}:predict", INPUTS[name], rows)
        for how, examples in given.items():
            if method == CLASSIFY:
                classify = classification_pb2.ClassificationRequest(input=examples)
                found[f"classify {name} {how}"] = _call(stub.Classify, classify, name)
            elif method == REGRESS:
                regress = regression_pb2.RegressionRequest(input=examples)
                found[f"regress {name} {how}"] = _call(stub.Regress, regress, name)
    for how, examples in given.items():
        together = inference_pb2.MultiInferenceRequest(input=examples)
        for name, method in METHODS.items():
            if method in (CLASSIFY, REGRESS):
                task = together.tasks.add(method_name=method)
                task.model_spec.name, task.model_spec.signature_name = "m", name
        if together.tasks:
            answer = stub.MultiInference(together, timeout=60)
            found[f"together {how}"] = answer.SerializeToString(deterministic=True)
    return found


def _list(rows: Sequence[bytes]) -> Any:
    examples = [tf.train.Example.FromString(row) for row in rows]
    return input_pb2.Input(example_list=input_pb2.ExampleList(examples=examples))


def _with_context(rows: Sequence[bytes]) -> Any:
    """An ExampleListWithContext whose context holds the features that all examples share."""
    parsed = [tf.train.Example.FromString(row) for row in rows]
    context = tf.train.Example()
    for name, feature in parsed[0].features.feature.items():
        if all(one.features.feature.get(name) == feature for one in parsed):
            context.features.feature[name].CopyFrom(feature)
    for one in parsed:
        for name in context.features.feature:
            del one.features.feature[name]
    listed = input_pb2.ExampleListWithContext(examples=parsed, context=context)
    return input_pb2.Input(example_list_with_context=listed)


def _call(method: Any, request: Any, signature: str) -> Any:
    request.model_spec.name, request.model_spec.signature_name = "m", signature
    return method(request, timeout=60).SerializeToString(deterministic=True)


def _rest(server: ServerProcess, call: str, name: str, rows: Sequence[bytes]) -> Any:
    signature, method = call.split(":")
    encoded = [{"b64": base64.b64encode(row).decode()} for row in rows]
    body = json.dumps({"signature_name": signature, "inputs": {name: encoded}}).encode()
    url = f"http://{server.rest_target}/v1/models/m:{method}"
    with urllib.request.urlopen(url, body, timeout=60) as response:
        return response.read()


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
        expected = answers(parsing, rows)
        found = answers(reading, rows)
        samples = Metrics(reading).samples
    assert len(expected) == 12
    for name, answer in expected.items():
        assert found[name] == answer, name
    counted = [s.value for s in samples if s.name == ":colcast:transcoded_requests_total"]
    assert sum(counted) == len(expected)
