"""A server of a model that takes tf.Examples; some of its signatures can classify.

Also has requests for it, TF Serving's stubs, and the same signatures run by TensorFlow.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    input_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

MODEL = "judge"
VERSION = 7
CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"
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
    "scores_and_more": lambda score, tag: {"scores": pair(score), "tags": tag},
    "regress": lambda score, tag: {"outputs": score},
    "regress_column": lambda score, tag: {"outputs": score[:, None]},
    "no_classes": lambda score, tag: {"values": pair(score)},
    "three": lambda score, tag: {"classes": pair(tag), "scores": pair(score), "tags": tag},
    "int_scores": lambda score, tag: {"scores": tf.cast(pair(score), tf.int64)},
    "regress_scalar": lambda score, tag: {"outputs": tf.reduce_sum(score)},
}


def signature_of(outputs: Outputs) -> tf.types.experimental.ConcreteFunction:
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def on_examples(inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        columns = tf.io.parse_example(inputs, FEATURES)
        clicks = tf.cast(tf.reduce_sum(columns["history"], axis=1), tf.float32)
        return outputs(100 * columns["user"] + columns["item"] + 1000 * clicks, columns["tag"])

    return on_examples.get_concrete_function()


@tf.function(
    input_signature=[
        tf.TensorSpec([None], tf.string, "inputs"),
        tf.TensorSpec([None], tf.string, "more"),
    ]
)
def two_inputs(inputs: tf.Tensor, more: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"outputs": tf.strings.to_number(inputs + more)}


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "inputs")])
def float_input(inputs: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"outputs": inputs + 1}


def save_judge(directory: Path) -> None:
    """Saves the model, with the method names of METHOD_NAMES, which TF 2 cannot set."""
    signatures: dict[str, Any] = {
        name: signature_of(outputs) for name, outputs in OUTPUTS.items()
    } | {"two_inputs": two_inputs, "float_input": float_input}
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
        self, given: input_pb2.Input, signature_name: str = "", **spec: Any
    ) -> classification_pb2.ClassificationResponse:
        request = classification_pb2.ClassificationRequest(input=given)
        self._fill(request.model_spec, signature_name, **spec)
        return self.stub.Classify(request, timeout=120)

    def regress(
        self, given: input_pb2.Input, signature_name: str = "regress", **spec: Any
    ) -> regression_pb2.RegressionResponse:
        request = regression_pb2.RegressionRequest(input=given)
        self._fill(request.model_spec, signature_name, **spec)
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
        self, given: input_pb2.Input, *tasks: tuple[str, str, str]
    ) -> inference_pb2.MultiInferenceResponse:
        """Calls MultiInference; a task is (method name, signature name, model name)."""
        request = inference_pb2.MultiInferenceRequest(input=given)
        for method_name, signature_name, model_name in tasks:
            task = request.tasks.add(method_name=method_name)
            self._fill(task.model_spec, signature_name, model_name)
        return self.stub.MultiInference(request, timeout=120)

    @staticmethod
    def _fill(
        spec: Any, signature_name: str, name: str = MODEL, version: int | None = None
    ) -> None:
        spec.name = name
        spec.signature_name = signature_name
        if version is not None:
            spec.version.value = version


class Error(NamedTuple):
    """The error of a call."""

    code: str
    message: str


@pytest.fixture(scope="session")
def error_of() -> Callable[..., Error]:
    """A function that makes a call with these arguments and returns the error that it raises."""

    def run(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Error:
        with pytest.raises(grpc.RpcError) as raised:
            call(*args, **kwargs)
        return Error(raised.value.code().name, raised.value.details())

    return run


@pytest.fixture(scope="session")
def judge_base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp(MODEL)
    save_judge(base_path / str(VERSION))
    return base_path


@pytest.fixture(scope="session")
def judge(judge_base_path: Path, servers: Any) -> Judge:
    server = servers.serve(judge_base_path, name=MODEL, stays=True).server
    return Judge(server.target, server)


@pytest.fixture(scope="session")
def strict_judge(judge_base_path: Path) -> Iterator[Judge]:
    """The model behind a server with --enable_signature_method_name_check."""
    flags = ["--enable_signature_method_name_check"]
    with ServerProcess(MODEL, judge_base_path, flags=flags) as process:
        yield Judge(process.target)


@pytest.fixture(scope="session")
def in_tensorflow(judge_base_path: Path) -> Callable[..., dict[str, Any]]:
    """A function that runs a signature on examples in TensorFlow and returns its outputs."""
    loaded = tf.saved_model.load(str(judge_base_path / str(VERSION)))

    def run(signature_name: str, examples: Sequence[tf.train.Example]) -> dict[str, Any]:
        serialized = tf.constant([one.SerializeToString() for one in examples])
        outputs = loaded.signatures[signature_name](inputs=serialized)
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    return run


@pytest.fixture(scope="session")
def make_example() -> Callable[..., tf.train.Example]:
    return example


@pytest.fixture(scope="session")
def make_input() -> Callable[..., input_pb2.Input]:
    return input_of
