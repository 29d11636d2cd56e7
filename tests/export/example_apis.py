"""Sends the same tf.Examples through every API that takes them, to compare two servers."""

import base64
import json
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from colcast.server import ServerProcess
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    input_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"


def answers(
    server: ServerProcess,
    methods: Mapping[str, str],
    inputs: Mapping[str, str],
    rows: Sequence[bytes],
) -> dict[str, Any]:
    """Calls model "m" through every API; returns the serialized answers by API and signature.

    Args:
        server: a server that also listens for HTTP.
        methods: method_name by signature.
        inputs: the name of the input of Examples by signature.
        rows: serialized Examples.
    """
    stub = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel(server.target))
    given = {"list": _list(rows), "context": _with_context(rows)}
    found: dict[str, Any] = {}
    for name, method in methods.items():
        predict = predict_pb2.PredictRequest()
        predict.inputs[inputs[name]].CopyFrom(tf.make_tensor_proto(np.array(rows, object)))
        found[f"predict {name}"] = _call(stub.Predict, predict, name)
        found[f"rest {name}"] = _rest(server, f"{name}:predict", inputs[name], rows)
        for how, examples in given.items():
            if method == CLASSIFY:
                classify = classification_pb2.ClassificationRequest(input=examples)
                found[f"classify {name} {how}"] = _call(stub.Classify, classify, name)
            elif method == REGRESS:
                regress = regression_pb2.RegressionRequest(input=examples)
                found[f"regress {name} {how}"] = _call(stub.Regress, regress, name)
    for how, examples in given.items():
        together = inference_pb2.MultiInferenceRequest(input=examples)
        for name, method in methods.items():
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
    examples = [tf.train.Example.FromString(row) for row in rows]
    context = tf.train.Example()
    for name, feature in examples[0].features.feature.items():
        if all(example.features.feature.get(name) == feature for example in examples):
            context.features.feature[name].CopyFrom(feature)
    for example in examples:
        for name in context.features.feature:
            del example.features.feature[name]
    listed = input_pb2.ExampleListWithContext(examples=examples, context=context)
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
