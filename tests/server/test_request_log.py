"""Request logs: sampling by a model's logging_config, and the files."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from tensorflow_serving.apis import (
    prediction_log_pb2,
)

from ..waiting import wait_until
from .servers import Stubs

INPUTS = {"x": [1.0, 2.0, 3.0], "name": [b"ann"]}
FEATURES = {"numbers": [1, 2], "word": "red"}


class Model(tf.Module):
    """A model that returns 2 x and a name and, for tf.Examples, their bytes as scores or values."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.float32, "x"),
            tf.TensorSpec([None], tf.string, "name"),
        ]
    )
    def predict(self, x, name):
        return {"twice": 2 * x, "name": name}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(self, inputs):
        return {"scores": tf.cast(tf.strings.length(inputs), tf.float32)[:, tf.newaxis]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def regress(self, inputs):
        return {"outputs": tf.cast(tf.strings.length(inputs), tf.float32)}


@pytest.fixture(scope="module")
def base_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("twice")
    model = Model()
    signatures = {
        "serving_default": model.predict,
        "classify": model.classify,
        "regress": model.regress,
    }
    tf.saved_model.save(model, str(path / "7"), signatures=signatures)
    return path


def logging(logs: Path, rate: float = 1.0, kind: str = "") -> str:
    """A logging_config that logs this share of the requests."""
    return (
        f'logging_config {{ log_collector_config {{ type: "{kind}" filename_prefix: "{logs}/log" }}'
        f" sampling_config {{ sampling_rate: {rate} }} }}"
    )


class Logged(NamedTuple):
    """A model that logs every request, and the folder of its log."""

    stubs: Stubs
    logs: Path

    def after(self, requests: Callable[[], None], count: int) -> list[Any]:
        """Sends requests; returns their records, of which there must be `count`."""
        before = len(list(read(self.logs)))
        requests()
        wait_until(lambda: len(list(read(self.logs))) >= before + count)
        records = list(read(self.logs))[before:]
        assert len(records) == count
        return records


@pytest.fixture(scope="module")
def logged(base_path, log_folder, serve):
    logs = log_folder()
    return Logged(serve(base_path, name="twice", fields=logging(logs)), logs)


def read(folder: Path) -> Iterator[prediction_log_pb2.PredictionLog]:
    for file in sorted(folder.iterdir()):
        for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
            yield prediction_log_pb2.PredictionLog.FromString(record)


def example() -> tf.train.Example:
    found = tf.train.Example()
    found.features.feature["numbers"].int64_list.value.extend(FEATURES["numbers"])
    found.features.feature["word"].bytes_list.value.append(b"red")
    return found


def post(server: ServerProcess, method: str, body: object) -> dict:
    url = f"http://{server.rest_target}/v1/models/twice:{method}"
    with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=120) as answer:
        return json.load(answer)


def test_a_request_is_logged_as_it_came_with_its_response(logged):
    stubs = logged.stubs
    request = stubs.request(INPUTS)
    responses = []
    (log,) = logged.after(
        lambda: responses.append(stubs.prediction.Predict(request, timeout=120)), 1
    )
    assert log.predict_log.request == request
    assert log.predict_log.response == responses[0]
    metadata = log.log_metadata
    assert (metadata.model_spec.name, metadata.model_spec.version.value) == ("twice", 7)
    assert metadata.model_spec.signature_name == "serving_default"
    assert metadata.sampling_config.sampling_rate == 1.0
    assert metadata.timestamp_secs > 1.7e9


def test_requests_over_rest_are_logged_as_grpc_would_have_brought_them(logged):
    columns = {"x": INPUTS["x"], "name": ["ann"]}
    with_context = {
        "signature_name": "regress",
        "context": {"word": "red"},
        "examples": [{"numbers": [1, 2]}],
    }
    answers = []

    def ask() -> None:
        classify = {"signature_name": "classify", "examples": [FEATURES]}
        answers.append(post(logged.stubs.server, "predict", {"inputs": columns}))
        answers.append(post(logged.stubs.server, "classify", classify))
        answers.append(post(logged.stubs.server, "regress", with_context))

    predict, classify, regress = logged.after(ask, 3)
    answer, scores, values = answers
    sent = predict.predict_log.request
    assert sent.model_spec.name == "twice"
    assert {n: tf.make_ndarray(t).tolist() for n, t in sent.inputs.items()} == INPUTS
    outputs = predict.predict_log.response.outputs
    assert tf.make_ndarray(outputs["twice"]).tolist() == answer["outputs"]["twice"] == [2, 4, 6]
    assert predict.log_metadata.model_spec.version.value == 7
    assert classify.classify_log.request.input.example_list.examples == [example()]
    assert classify.classify_log.request.model_spec.name == "twice"
    (scored,) = classify.classify_log.response.result.classifications
    assert scored.classes[0].score == scores["results"][0][0][1]
    elwc = regress.regress_log.request.input.example_list_with_context
    assert elwc.context.features.feature["word"].bytes_list.value == [b"red"]
    assert elwc.examples[0].features.feature["numbers"].int64_list.value == [1, 2]
    assert regress.regress_log.response.result.regressions[0].value == values["results"][0]


def test_requests_that_fail_are_not_logged(logged):
    stubs = logged.stubs

    def ask() -> None:
        with pytest.raises(Exception, match="INVALID_ARGUMENT"):
            stubs.predict({"x": [1.0]})
        stubs.predict({"x": [7.0], "name": [b"bob"]})

    (log,) = logged.after(ask, 1)  # records are in the order of requests
    assert tf.make_ndarray(log.predict_log.request.inputs["x"]).tolist() == [7.0]
