"""Regress as TF Serving's own stub sees it."""

import numpy as np
import pytest
from google.protobuf.wrappers_pb2 import Int64Value
from tensorflow_serving.apis import model_pb2


@pytest.fixture
def items(make_example):
    return [make_example(item=1.0), make_example(item=2.0, user=7.0)]


@pytest.fixture
def given(make_input, make_example, items):
    """A user as context, two items; the second has a user of its own."""
    return make_input(items, make_example(user=2.0))


@pytest.mark.parametrize("signature_name", ["regress", "regress_column"])
def test_a_number_for_each_example_as_tensorflow_gives(
    judge, given, make_example, in_tensorflow, signature_name
):
    response = judge.regress(given, signature_name)
    merged = [make_example(user=2.0, item=1.0), make_example(user=7.0, item=2.0)]
    expected = in_tensorflow(signature_name, merged)["outputs"].ravel()
    values = [one.value for one in response.result.regressions]
    np.testing.assert_array_equal(np.float32(values), expected)
    assert response.model_spec == model_pb2.ModelSpec(
        name="judge", version=Int64Value(value=7), signature_name=signature_name
    )


@pytest.mark.parametrize(
    ("signature_name", "words"),
    [
        ("", ['"outputs"', "{classes, scores}"]),
        ("nothing", ["No signature was found", '"nothing"']),
        ("other_input", ['"inputs"', "{examples}"]),
        ("two_inputs", ['"inputs"', "{inputs, more}"]),
        ("float_input", ['"inputs"', "float"]),
        ("regress_pairs", ["[batch_size] or [batch_size, 1]", "[2,2]"]),
        ("regress_scalar", ["[batch_size] or [batch_size, 1]", "[]"]),
        ("regress_row_too_many", ["2 vs. 4"]),
        ("regress_int", ["DT_FLOAT", "DT_INT64"]),
    ],
)
def test_a_signature_that_can_not_regress_is_refused(judge, given, error_of, signature_name, words):
    code, message = error_of(judge.regress, given, signature_name)
    assert code == "INVALID_ARGUMENT"
    assert all(word in message for word in words), message
    assert len(judge.regress(given).result.regressions) == 2


def test_method_names_count_only_where_the_flag_says_so(judge, strict_judge, given, error_of):
    assert judge.regress(given, "regress_column").result.regressions
    code, message = error_of(strict_judge.regress, given, "regress_column")
    assert code == "INVALID_ARGUMENT"
    assert "regression signature method_name" in message
    assert strict_judge.regress(given).result == judge.regress(given).result
