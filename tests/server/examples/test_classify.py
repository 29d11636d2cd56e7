"""Classify and Regress as TF Serving's own stubs see them."""

import numpy as np
import pytest
from google.protobuf.wrappers_pb2 import Int64Value
from tensorflow_serving.apis import input_pb2, model_pb2

CLASSIFY = "tensorflow/serving/classify"


@pytest.fixture
def examples(make_example):
    return [
        make_example(user=2.0, item=1.0, tag="a"),
        make_example(user=2.0, item=2.0, tag="b", history=[3, 4]),
        make_example(user=2.0, item=3.0),
    ]


def labels_and_scores(response):
    """The labels and the scores, each a list of rows."""
    rows = response.result.classifications
    return (
        [[one.label.encode() for one in row.classes] for row in rows],
        [[one.score for one in row.classes] for row in rows],
    )


def test_an_example_list_gives_what_tensorflow_gives(judge, make_input, in_tensorflow, examples):
    labels, scores = labels_and_scores(judge.classify(make_input(examples)))
    expected = in_tensorflow("serving_default", examples)
    np.testing.assert_array_equal(labels, expected["classes"])
    np.testing.assert_array_equal(np.float32(scores), expected["scores"])


def test_the_response_says_which_model_answered(judge, make_input, examples):
    response = judge.classify(make_input(examples), signature_name="")
    assert response.model_spec == model_pb2.ModelSpec(
        name="judge", version=Int64Value(value=7), signature_name="serving_default"
    )


@pytest.mark.parametrize(
    ("signature_name", "has_labels", "has_scores"),
    [
        ("only_classes", True, False),
        ("only_scores", False, True),
        ("scores_and_more", False, True),
    ],
)
def test_classes_or_scores_may_be_all_there_is(
    judge, make_input, examples, signature_name, has_labels, has_scores
):
    response = judge.classify(make_input(examples), signature_name)
    for row in response.result.classifications:
        assert len(row.classes) == 2
        assert all((one.label != "") == has_labels for one in row.classes)
        assert all((one.score != 0) == has_scores for one in row.classes)


@pytest.mark.parametrize(
    ("signature_name", "words"),
    [
        ("no_classes", ['"classes"', '"scores"', "values"]),
        ("three", ["one or two", "tags"]),
        ("two_inputs", ['"inputs"', "{inputs, more}"]),
        ("int_scores", ["scores", "DT_FLOAT", "DT_INT64"]),
    ],
)
def test_a_signature_that_cannot_classify_is_refused(
    judge, make_input, examples, error_of, signature_name, words
):
    code, message = error_of(judge.classify, make_input(examples), signature_name)
    assert code == "INVALID_ARGUMENT"
    assert all(word in message for word in words), message
    assert len(judge.classify(make_input(examples)).result.classifications) == 3


def test_a_request_without_examples_is_refused(judge, make_input, make_example, error_of):
    for given in (input_pb2.Input(), make_input([]), make_input([], make_example(user=1.0))):
        code, message = error_of(judge.classify, given)
        assert (code, "Input is empty" in message) == ("INVALID_ARGUMENT", True)


def test_method_names_matter_only_if_the_flag_says_so(
    judge, strict_judge, make_input, examples, error_of
):
    given = make_input(examples)
    assert judge.classify(given, "only_scores").result.classifications
    code, message = error_of(strict_judge.classify, given, "only_scores")
    assert code == "INVALID_ARGUMENT"
    assert f"method_name to be {CLASSIFY}. Was: tensorflow/serving/predict" in message
    assert strict_judge.classify(given).result == judge.classify(given).result


def test_the_flag_asks_predict_for_a_method_name_it_knows(judge, strict_judge, examples, error_of):
    assert judge.predict(examples, "only_classes").outputs
    code, message = error_of(strict_judge.predict, examples, "only_classes")
    assert code == "INTERNAL"  # the code that TensorFlow Serving returns
    assert all(word in message for word in ("method_name", CLASSIFY, '"judge/own"'))
    for known in ("", "regress", "only_scores"):
        assert strict_judge.predict(examples, known).outputs


@pytest.fixture
def items(make_example):
    return [make_example(item=1.0), make_example(item=2.0, user=7.0)]


@pytest.fixture
def given(make_input, make_example, items):
    """A user as the context of two items; the second item overrides the user."""
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
