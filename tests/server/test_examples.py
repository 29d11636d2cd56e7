"""Classify, Regress and MultiInference as TF Serving's own stubs see them, and as TensorFlow runs.

Some signatures of the model, which takes tf.Examples, can classify.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from google.protobuf.wrappers_pb2 import Int64Value
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    input_pb2,
    model_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from .metrics_page import Metrics

MODEL = "judge"
VERSION = 7
CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"
PREDICT = "tensorflow/serving/predict"
METHOD_NAMES = {  # other signatures have the method name of Predict
    "serving_default": CLASSIFY,
    "regress": REGRESS,
    "only_classes": "judge/own",
}

FEATURES = {
    "user": tf.io.FixedLenFeature([], tf.float32),
    "item": tf.io.FixedLenFeature([], tf.float32),
    "tag": tf.io.FixedLenFeature([], tf.string, default_value="none"),
    "history": tf.io.RaggedFeature(tf.int64),
}

Outputs = Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]]


def pair(tensor: tf.Tensor) -> tf.Tensor:
    """Duplicates every value: [rows] becomes [rows, 2]."""
    return tf.stack([tensor, tensor], axis=1)


# signature -> its outputs, computed from every row's score and tag
OUTPUTS: dict[str, Outputs] = {
    "serving_default": lambda score, tag: {
        "classes": tf.stack([tag, tag + "!"], axis=1),
        "scores": tf.stack([score, -score], axis=1),
    },
    "only_classes": lambda score, tag: {"classes": pair(tag)},
    "only_scores": lambda score, tag: {"scores": tf.stack([score, -score], axis=1)},
    "regress": lambda score, tag: {"outputs": score},
    "regress_column": lambda score, tag: {"outputs": score[:, None]},
    "no_classes": lambda score, tag: {"values": pair(score)},
}


def signature_of(outputs: Outputs) -> tf.types.experimental.ConcreteFunction:
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def on_examples(inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        columns = tf.io.parse_example(inputs, FEATURES)
        clicks = tf.cast(tf.reduce_sum(columns["history"], axis=1), tf.float32)
        return outputs(100 * columns["user"] + columns["item"] + 1000 * clicks, columns["tag"])

    return on_examples.get_concrete_function()


def save_judge(directory: Path) -> None:
    """Saves the model, with the method names of METHOD_NAMES, which TF 2 cannot set."""
    signatures = {name: signature_of(outputs) for name, outputs in OUTPUTS.items()}
    tf.saved_model.save(tf.Module(), str(directory), signatures=signatures)
    path = directory / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    for name, method_name in METHOD_NAMES.items():
        saved.meta_graphs[0].signature_def[name].method_name = method_name
    path.write_bytes(saved.SerializeToString())


def example(**features: float | str | Sequence[int]) -> tf.train.Example:
    """A tf.Example: numbers become a float_list, strings a bytes_list, sequences an int64_list."""
    made = tf.train.Example()
    for name, value in features.items():
        feature = made.features.feature[name]
        if isinstance(value, str):
            feature.bytes_list.value.append(value.encode())
        elif isinstance(value, int | float):
            feature.float_list.value.append(value)
        else:
            feature.int64_list.value.extend(value)
    return made


def input_of(
    examples: Sequence[tf.train.Example], context: tf.train.Example | None = None
) -> input_pb2.Input:
    """An example_list or, with a context, an example_list_with_context."""
    if context is None:
        return input_pb2.Input(example_list=input_pb2.ExampleList(examples=examples))
    return input_pb2.Input(
        example_list_with_context=input_pb2.ExampleListWithContext(
            examples=examples, context=context
        )
    )


class Judge:
    """Calls the model; every method raises grpc.RpcError on an error."""

    def __init__(self, target: str, server: ServerProcess | None = None) -> None:
        self.server = server
        self.channel = grpc.insecure_channel(target)
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)

    def classify(
        self, given: input_pb2.Input, signature_name: str = ""
    ) -> classification_pb2.ClassificationResponse:
        request = classification_pb2.ClassificationRequest(input=given)
        self._fill(request.model_spec, signature_name)
        return self.stub.Classify(request, timeout=120)

    def regress(
        self, given: input_pb2.Input, signature_name: str = "regress"
    ) -> regression_pb2.RegressionResponse:
        request = regression_pb2.RegressionRequest(input=given)
        self._fill(request.model_spec, signature_name)
        return self.stub.Regress(request, timeout=120)

    def predict(
        self, given: Sequence[tf.train.Example], signature_name: str
    ) -> predict_pb2.PredictResponse:
        request = predict_pb2.PredictRequest()
        self._fill(request.model_spec, signature_name)
        serialized = [one.SerializeToString() for one in given]
        request.inputs["inputs"].CopyFrom(tf.make_tensor_proto(serialized))
        return self.stub.Predict(request, timeout=120)

    def infer(
        self, given: input_pb2.Input, *tasks: tuple[str, str]
    ) -> inference_pb2.MultiInferenceResponse:
        """Calls MultiInference; a task is (method name, signature name)."""
        request = inference_pb2.MultiInferenceRequest(input=given)
        for method_name, signature_name in tasks:
            task = request.tasks.add(method_name=method_name)
            self._fill(task.model_spec, signature_name)
        return self.stub.MultiInference(request, timeout=120)

    @staticmethod
    def _fill(spec: Any, signature_name: str) -> None:
        spec.name, spec.signature_name = MODEL, signature_name


class Error(NamedTuple):
    """The error of a call."""

    code: str
    message: str


def error_of(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Error:
    """Makes a call with these arguments; returns the error that it raises."""
    with pytest.raises(grpc.RpcError) as raised:
        call(*args, **kwargs)
    return Error(raised.value.code().name, raised.value.details())


@pytest.fixture(scope="module")
def judge_base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp(MODEL)
    save_judge(base_path / str(VERSION))
    return base_path


@pytest.fixture(scope="module")
def judge(judge_base_path: Path, serve: Any) -> Judge:
    server = serve(judge_base_path, name=MODEL).server
    return Judge(server.target, server)


@pytest.fixture(scope="module")
def strict_judge(judge_base_path: Path, serve: Any) -> Judge:
    """The model behind a server with --enable_signature_method_name_check."""
    strict = serve(judge_base_path, "--enable_signature_method_name_check", name=MODEL)
    return Judge(strict.server.target)


@pytest.fixture(scope="module")
def in_tensorflow(judge_base_path: Path) -> Callable[..., dict[str, Any]]:
    """A function that runs a signature on examples in TensorFlow and returns its outputs."""
    loaded = tf.saved_model.load(str(judge_base_path / str(VERSION)))

    def run(signature_name: str, examples: Sequence[tf.train.Example]) -> dict[str, Any]:
        serialized = tf.constant([one.SerializeToString() for one in examples])
        outputs = loaded.signatures[signature_name](inputs=serialized)
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    return run


@pytest.fixture
def examples():
    return [
        example(user=2.0, item=1.0, tag="a"),
        example(user=2.0, item=2.0, tag="b", history=[3, 4]),
        example(user=2.0, item=3.0),
    ]


def labels_and_scores(response):
    """The labels and the scores, each a list of rows."""
    rows = response.result.classifications
    return (
        [[one.label.encode() for one in row.classes] for row in rows],
        [[one.score for one in row.classes] for row in rows],
    )


def test_an_example_list_gives_what_tensorflow_gives(judge, in_tensorflow, examples):
    labels, scores = labels_and_scores(judge.classify(input_of(examples)))
    expected = in_tensorflow("serving_default", examples)
    np.testing.assert_array_equal(labels, expected["classes"])
    np.testing.assert_array_equal(np.float32(scores), expected["scores"])


def test_a_signature_that_cannot_classify_is_refused(judge, examples):
    code, message = error_of(judge.classify, input_of(examples), "no_classes")
    assert code == "INVALID_ARGUMENT"
    assert all(word in message for word in ('"classes"', '"scores"', "values")), message
    assert len(judge.classify(input_of(examples)).result.classifications) == 3


def test_method_names_matter_only_if_the_flag_says_so(judge, strict_judge, examples):
    given = input_of(examples)
    assert judge.classify(given, "only_scores").result.classifications
    code, message = error_of(strict_judge.classify, given, "only_scores")
    assert code == "INVALID_ARGUMENT"
    assert f"method_name to be {CLASSIFY}. Was: {PREDICT}" in message
    assert strict_judge.classify(given).result == judge.classify(given).result
    assert judge.predict(examples, "only_classes").outputs
    code, message = error_of(strict_judge.predict, examples, "only_classes")
    assert code == "INTERNAL"  # the code that TensorFlow Serving returns
    assert all(word in message for word in ("method_name", CLASSIFY, '"judge/own"'))
    for known in ("", "regress", "only_scores"):
        assert strict_judge.predict(examples, known).outputs


@pytest.fixture
def given():
    """A user as the context of two items; the second item overrides the user."""
    items = [example(item=1.0), example(item=2.0, user=7.0)]
    return input_of(items, example(user=2.0))


@pytest.mark.parametrize("signature_name", ["regress", "regress_column"])
def test_a_number_for_each_example_as_tensorflow_gives(judge, given, in_tensorflow, signature_name):
    response = judge.regress(given, signature_name)
    merged = [example(user=2.0, item=1.0), example(user=7.0, item=2.0)]
    expected = in_tensorflow(signature_name, merged)["outputs"].ravel()
    values = [one.value for one in response.result.regressions]
    np.testing.assert_array_equal(np.float32(values), expected)
    assert response.model_spec == model_pb2.ModelSpec(
        name="judge", version=Int64Value(value=7), signature_name=signature_name
    )


def test_each_task_is_answered_as_its_own_call_would_be(judge, given):
    response = judge.infer(
        given,
        (REGRESS, "regress_column"),
        (CLASSIFY, ""),
        (REGRESS, "regress"),
    )
    first, second, third = response.results
    assert first.regression_result == judge.regress(given, "regress_column").result
    assert second.classification_result == judge.classify(given).result
    assert third.regression_result == judge.regress(given).result
    names = [one.model_spec.signature_name for one in response.results]
    assert names == ["regress_column", "serving_default", "regress"]
    assert all(one.model_spec.version.value == 7 for one in response.results)
    assert all(one.model_spec.name == "judge" for one in response.results)


def test_examples_are_counted_by_model_and_api(judge):
    before = Metrics(judge.server)
    user = example(user=2.0)
    for count in (1, 5):
        judge.regress(input_of([example(item=1.0)] * count, user), "regress")
    judge.classify(input_of([example(item=1.0)] * 3, user))
    judge.predict([example(item=1.0, user=2.0)] * 7, "regress")
    metrics = Metrics(judge.server)

    def grown(name: str, **labels: str) -> float:
        return metrics.value(name, **labels) - before.value(name, **labels)

    assert grown(":tensorflow:serving:request_example_count_total", model="judge") == 9
    assert grown(":tensorflow:serving:request_example_counts_count", model="judge") == 3
    assert grown(":tensorflow:serving:request_count", model_name="judge", status="OK") == 4
    for api, signature_name, rows in (
        ("Regress", "regress", 6),
        ("Classify", "serving_default", 3),
        ("Predict", "regress", 7),
    ):
        labels = {"model_name": "judge", "signature_name": signature_name}
        labels |= {"API": api, "entrypoint": "GRPC"}
        assert grown(":colcast:rows_sum", **labels) == rows
