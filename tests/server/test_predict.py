"""Predict, GetModelMetadata and GetModelStatus as TF Serving's own stubs see them."""

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf.wrappers_pb2 import Int64Value
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_pb2,
)


def error_of(call):
    """Runs call() and returns (code, message) of the RpcError it raises."""
    with pytest.raises(grpc.RpcError) as raised:
        call()
    return raised.value.code(), raised.value.details()


def test_a_user_sent_once_scores_every_item(stubs, ranker_inputs):
    outputs = stubs.predict(ranker_inputs)
    np.testing.assert_array_equal(outputs["score"], np.float32([201, 202, 203]))
    assert outputs["tag"].tolist() == [b"a:x", b"a:y", b"a:z"]


def test_a_user_sent_once_equals_a_user_repeated(stubs, ranker_inputs):
    repeated = ranker_inputs | {"user": [2.0] * 3, "user_name": ["ann"] * 3}
    once, every_row = stubs.predict(ranker_inputs), stubs.predict(repeated)
    for name in once:
        np.testing.assert_array_equal(once[name], every_row[name])


def test_the_response_says_which_model_answered(stubs, ranker_inputs):
    response = stubs.prediction.Predict(stubs.request(ranker_inputs, signature_name=""))
    assert response.model_spec == model_pb2.ModelSpec(
        name="ranker", version=Int64Value(value=3), signature_name="serving_default"
    )


def test_output_filter_selects_outputs(stubs, ranker_inputs):
    assert stubs.predict(ranker_inputs, output_filter=["tag"]).keys() == {"tag"}
    assert stubs.predict(ranker_inputs, output_filter=["tag", "score"]).keys() == {"score", "tag"}


def test_metadata_holds_the_signatures(stubs):
    signature = stubs.metadata().signature_def["serving_default"]
    assert set(signature.inputs) == {"user", "item", "user_name", "item_name"}
    assert set(signature.outputs) == {"score", "tag"}


def test_status_names_the_version_that_serves(stubs):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "ranker"
    (status,) = stubs.models.GetModelStatus(request).model_version_status
    assert status.version == 3
    assert status.state == get_model_status_pb2.ModelVersionStatus.AVAILABLE
    assert status.status.error_code == 0


@pytest.mark.parametrize(
    ("change", "spec", "code", "words"),
    [
        ({}, {"name": "nobody"}, "NOT_FOUND", ["nobody", "ranker"]),
        ({}, {"name": ""}, "INVALID_ARGUMENT", ["model_spec", "name"]),
        ({}, {"version": 4}, "NOT_FOUND", ["4", "3"]),
        ({}, {"signature_name": "late"}, "FAILED_PRECONDITION", ["late", "serving_default"]),
        ({}, {"output_filter": ["rank"]}, "INVALID_ARGUMENT", ["rank", "score, tag"]),
        ({}, {"output_filter": ["tag", "tag"]}, "INVALID_ARGUMENT", ["duplicate", "tag"]),
        ({"user": [2]}, {}, "INVALID_ARGUMENT", ['"user"', "int32", "float"]),
        ({"user": [[2.0]]}, {}, "INVALID_ARGUMENT", ['"user"', "[1,1]", "[?]"]),
        ({"user": 2.0}, {}, "INVALID_ARGUMENT", ['"user"', "[]", "[?]"]),
        ({"user": [1.0, 2.0]}, {}, "INVALID_ARGUMENT", ['"user" has 2 rows', "3"]),
        ({"item": None}, {}, "INVALID_ARGUMENT", ['"item"', "missing"]),
        ({"age": [3.0]}, {}, "INVALID_ARGUMENT", ['"age"', "not in the signature"]),
        ({"row_to_user": [0] * 3}, {}, "INVALID_ARGUMENT", ["row_to_user"]),
    ],
)
def test_a_wrong_request_names_the_culprit(stubs, ranker_inputs, change, spec, code, words):
    inputs = {k: v for k, v in (ranker_inputs | change).items() if v is not None}
    got_code, message = error_of(lambda: stubs.predict(inputs, **spec))
    assert got_code.name == code, message
    assert all(word in message for word in words), message
    assert stubs.predict(ranker_inputs)["score"].shape == (3,)


@pytest.mark.parametrize(
    ("fields", "words"), [([], ["metadata_field"]), (["weights"], ["weights", "signature_def"])]
)
def test_metadata_refuses_fields_it_does_not_have(stubs, fields, words):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=fields)
    request.model_spec.name = "ranker"
    code, message = error_of(lambda: stubs.prediction.GetModelMetadata(request))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert all(word in message for word in words)


OUTPUTS = {f"times_{factor}": factor for factor in range(2, 8)}
SETS = [
    chosen for size in range(1, len(OUTPUTS) + 1) for chosen in combinations(sorted(OUTPUTS), size)
]


class Products(tf.Module):
    """A model with as many outputs as factors."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def products(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: x * factor for name, factor in OUTPUTS.items()}


def test_every_set_of_outputs_is_answered_by_itself_while_others_ask_for_other_sets(
    tmp_path: Path, serve: Any
) -> None:
    module = Products()
    tf.saved_model.save(module, str(tmp_path / "1"), signatures=module.products)
    stubs = serve(tmp_path)

    def ask(chosen: tuple[str, ...]) -> None:
        x = np.arange(3, dtype=np.float32) + len(chosen)
        outputs = stubs.predict({"x": x}, output_filter=chosen)
        assert set(outputs) == set(chosen)
        for name in chosen:
            np.testing.assert_array_equal(outputs[name], x * OUTPUTS[name])

    with ThreadPoolExecutor(4) as clients:
        for _ in clients.map(ask, SETS * 3):
            pass
