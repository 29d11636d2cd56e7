"""Answers under load against answers in peace."""

from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.loadtest.measure.correctness import check, outputs_difference, reference_answers
from colcast.loadtest.measure.recording import Sample
from colcast.loadtest.send.connection import Request
from tensorflow_serving.apis import predict_pb2

REQUESTS = [Request(b"", rows=1)] * 2


def response(**outputs: Any) -> bytes:
    message = predict_pb2.PredictResponse()
    for name, values in outputs.items():
        message.outputs[name].CopyFrom(tf.make_tensor_proto(values))
    return bytes(message.SerializeToString())


@pytest.mark.parametrize(
    ("expected", "got", "difference"),
    [
        ([0.5, 0.25], [0.5, 0.25], 0.0),
        ([0.5, 0.25], [0.5, 0.5], 0.25),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [np.nan, 3.0], 2.0),
        ([np.inf], [np.inf], 0.0),
        ([np.nan], [1.0], np.inf),
        ([np.inf], [1.0], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
        ([1.0], [1], np.inf),
        ([b"a"], [b"a"], 0.0),
        ([b"a"], [b"b"], np.inf),
        ([True], [False], 1.0),
        ([], [], 0.0),
    ],
)
def test_the_difference_of_two_outputs(expected: list, got: list, difference: float):
    one, two = (np.array(values) for values in (expected, got))
    one, two = (v.astype(object) if v.dtype.kind == "S" else v for v in (one, two))
    assert outputs_difference({"score": one}, {"score": two}) == difference


def test_a_missing_output_is_as_wrong_as_can_be():
    assert outputs_difference({"a": np.zeros(1)}, {"b": np.zeros(1)}) == np.inf


def test_samples_are_compared_with_their_own_requests_answer():
    expected = [{"score": np.array([0.1], np.float32)}, {"score": np.array([0.9], np.float32)}]
    samples = [
        Sample(0, response(score=np.array([0.1], np.float32))),
        Sample(1, response(score=np.array([0.9], np.float32))),
        Sample(0, response(score=np.array([0.9], np.float32))),
    ]
    found = check(samples, REQUESTS, expected, tolerance=1e-6)
    assert (found.checked, found.wrong) == (3, 1)
    assert found.largest == pytest.approx(0.8)


def test_an_answer_that_cannot_be_read_is_wrong():
    found = check([Sample(0, b"\xff")], REQUESTS, [{"score": np.zeros(1)}], tolerance=1.0)
    assert (found.wrong, found.largest) == (1, np.inf)


def test_differences_within_the_tolerance_are_not_wrong():
    sample = Sample(0, response(score=[0.5 + 1e-7]))
    assert check([sample], REQUESTS, [{"score": np.array([0.5], np.float32)}], 1e-5).wrong == 0


def test_a_request_the_server_refuses_is_named(serve: Any):
    def refuse(request: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no input 'x'")
        raise AssertionError

    target = serve(refuse)
    with pytest.raises(RuntimeError, match=r"request 0 is refused, INVALID_ARGUMENT: no input 'x'"):
        reference_answers(target, [Request(b"", rows=1)])
