"""The format `elwc`: its requests to Regress and Classify, and its answers."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import (
    DecodeError,
    ModelSchema,
    SchemaError,
    Signature,
)
from colcast.client.columns._dtypes import STRING, dtype_of_array
from colcast.client.columns._schema import TensorSpec
from colcast.loadtest.send.connection import CLASSIFY, REGRESS
from colcast.loadtest.send.formats import elwc_request, scoring_signature
from tensorflow_serving.apis import classification_pb2, regression_pb2

from ..models.saving import serialized

FLOAT = dtype_of_array(np.zeros(1, np.float32))


def signature(
    name: str, outputs: dict[str, int], method: str = "", given: str = "inputs"
) -> Signature:
    """A signature that has one string input; `outputs` is each output's rank."""
    specs = {key: TensorSpec(key, FLOAT, (None,) * rank) for key, rank in outputs.items()}
    return Signature(name, {given: TensorSpec(given, STRING, (None,))}, specs, {}, method)


def schema(*signatures: Signature) -> ModelSchema:
    return ModelSchema("m", 1, {one.name: one for one in signatures})


def features(message: tf.train.Example) -> dict[str, list[float]]:
    return {name: list(one.float_list.value) for name, one in message.features.feature.items()}


REGRESSES = signature("score", {"outputs": 1}, "tensorflow/serving/regress")
ROWS = [serialized({"age": 31.0, **more}) for more in ({"price": 5.0}, {"price": 7.0}, {})]


def test_features_equal_in_all_examples_become_the_context():
    request = elwc_request(schema(REGRESSES), ROWS)
    sent = regression_pb2.RegressionRequest.FromString(request.payload)
    assert (sent.model_spec.name, sent.model_spec.signature_name) == ("m", "score")
    given = sent.input.example_list_with_context
    assert features(given.context) == {"age": [31]}
    assert [features(one) for one in given.examples] == [{"price": [5]}, {"price": [7]}, {}]
    assert (request.rows, request.method) == (3, REGRESS)


@pytest.mark.parametrize(("rank", "values"), [(1, [1.5, 0.0, -2.0]), (2, [[1.5], [0.0], [-2.0]])])
def test_a_regression_is_read_as_predict_would_give_it(rank: int, values: list[Any]):
    response = regression_pb2.RegressionResponse()
    for value in (1.5, 0.0, -2.0):
        response.result.regressions.add(value=value)
    request = elwc_request(schema(signature("score", {"outputs": rank})), ROWS)
    outputs = request.decode(response.SerializeToString())
    assert outputs.keys() == {"outputs"}
    np.testing.assert_array_equal(outputs["outputs"], np.array(values, np.float32), strict=True)


@pytest.mark.parametrize("names", [{"classes", "scores"}, {"classes"}, {"scores"}])
def test_a_classification_is_read_as_predict_would_give_it(names: set[str]):
    response = classification_pb2.ClassificationResponse()
    for scores in ((0.25, 0.0), (-1.0, 4.0)):
        row = response.result.classifications.add()
        for label, score in zip("ab", scores, strict=True):
            row.classes.add(label=label, score=score)
    request = elwc_request(schema(signature("c", dict.fromkeys(names, 2))), ROWS[:2])
    assert request.method == CLASSIFY
    outputs = request.decode(response.SerializeToString())
    assert outputs.keys() == names
    if "scores" in names:
        assert outputs["scores"].tolist() == [[0.25, 0.0], [-1.0, 4.0]]
    if "classes" in names:
        assert outputs["classes"].tolist() == [[b"a", b"b"], [b"a", b"b"]]


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"\xff",
        b"\x0a\x04\x0a\x02\x0a\x00\x0a\x02\x0a\x00",
        b"\x0a\x02\x0a\x00\x0a\x08\x0a\x06\x0a\x04\x12\x02ab",
    ],
)
def test_a_malformed_answer_cannot_be_read(response: bytes):
    request = elwc_request(schema(signature("c", {"classes": 2, "scores": 2})), ROWS)
    with pytest.raises(DecodeError):
        request.decode(response)


@pytest.mark.parametrize(
    "other",
    [
        signature("x", {"score": 1}),
        signature("x", {"outputs": 1}, given="examples"),
        signature("x", {"scores": 2, "a": 1, "b": 1}),
    ],
)
def test_a_model_that_supports_neither_is_named(other: Signature):
    with pytest.raises(SchemaError, match=r"'elwc' needs .* 'm' has x"):
        scoring_signature(schema(other))
