"""What TF Serving does and neither patches nor the native server may change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import pytest
from tensorflow_serving.apis import get_model_metadata_pb2

ROW = {"user": np.float32([1]), "item": np.float32([4])}


def test_the_empty_signature_name_is_the_default_one(predict: Callable[..., Any]) -> None:
    answer = predict("", ROW)
    assert answer.output("score").tolist() == [104]
    spec = answer.response.model_spec
    assert (spec.name, spec.signature_name, spec.version.value) == (
        "conformance",
        "serving_default",
        1,
    )


def test_every_output_comes_back_without_a_filter(predict: Callable[..., Any]) -> None:
    assert set(predict("serving_default", ROW).response.outputs) == {"score", "item"}


def test_the_filter_selects_outputs(predict: Callable[..., Any]) -> None:
    answer = predict("serving_default", ROW, output_filter=("item",))
    assert set(answer.response.outputs) == {"item"}


@pytest.mark.parametrize("outputs", [("score", "nothing"), ("score", "score")])
def test_a_filter_of_unknown_or_repeated_outputs_is_refused(
    predict: Callable[..., Any], outputs: tuple[str, ...]
) -> None:
    answer = predict("serving_default", ROW, output_filter=outputs)
    answer.refused(grpc.StatusCode.INVALID_ARGUMENT, outputs[1])


def test_the_version_can_be_named(predict: Callable[..., Any]) -> None:
    assert predict("serving_default", ROW, version=1).output("score").tolist() == [104]


def test_an_unknown_version_is_not_found(predict: Callable[..., Any]) -> None:
    predict("serving_default", ROW, version=2).refused(grpc.StatusCode.NOT_FOUND, "2")


def test_an_unknown_model_is_not_found(predict: Callable[..., Any]) -> None:
    predict("serving_default", ROW, model="nobody").refused(grpc.StatusCode.NOT_FOUND, "nobody")


def test_an_unnamed_model_is_refused(predict: Callable[..., Any]) -> None:
    predict("serving_default", ROW, model="").refused(grpc.StatusCode.INVALID_ARGUMENT)


def test_an_unknown_signature_is_a_failed_precondition(predict: Callable[..., Any]) -> None:
    predict("nothing", ROW).refused(grpc.StatusCode.FAILED_PRECONDITION, "nothing")


def test_metadata_declares_the_signatures_as_they_were_saved(stub: Any) -> None:
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "conformance"
    signatures = get_model_metadata_pb2.SignatureDefMap()
    stub.GetModelMetadata(request, timeout=120).metadata["signature_def"].Unpack(signatures)
    late = signatures.signature_def["late"].inputs
    assert [dim.size for dim in late["user"].tensor_shape.dim] == [1]
    assert [dim.size for dim in late["item"].tensor_shape.dim] == [-1]
    assert signatures.signature_def["any_rank"].inputs["user"].tensor_shape.unknown_rank
