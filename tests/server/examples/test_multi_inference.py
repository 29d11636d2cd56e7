"""MultiInference as TF Serving's own stub sees it."""

import pytest
from tensorflow_serving.apis import input_pb2

CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"
PREDICT = "tensorflow/serving/predict"


@pytest.fixture
def given(make_input, make_example):
    return make_input([make_example(item=1.0), make_example(item=2.0)], make_example(user=2.0))


def test_each_task_is_answered_as_its_own_call_would_be(judge, given):
    response = judge.infer(
        given,
        (REGRESS, "regress_column", "judge"),
        (CLASSIFY, "", "judge"),
        (REGRESS, "regress", "judge"),
    )
    first, second, third = response.results
    assert first.regression_result == judge.regress(given, "regress_column").result
    assert second.classification_result == judge.classify(given).result
    assert third.regression_result == judge.regress(given).result
    names = [one.model_spec.signature_name for one in response.results]
    assert names == ["regress_column", "serving_default", "regress"]
    assert all(one.model_spec.version.value == 7 for one in response.results)
    assert all(one.model_spec.name == "judge" for one in response.results)


@pytest.mark.parametrize(
    ("tasks", "code", "words"),
    [
        ([], "INVALID_ARGUMENT", ["model_spec"]),
        ([(REGRESS, "regress", "")], "INVALID_ARGUMENT", ["model_spec"]),
        ([(REGRESS, "regress", "nobody")], "NOT_FOUND", ["nobody"]),
        (
            [(REGRESS, "regress", "judge"), (CLASSIFY, "", "")],
            "INVALID_ARGUMENT",
            ["empty model name"],
        ),
        (
            [(REGRESS, "regress", "judge"), (CLASSIFY, "", "jury")],
            "INVALID_ARGUMENT",
            ["same model name", '"judge"', '"jury"'],
        ),
        (
            [(REGRESS, "regress", "judge"), (REGRESS, "regress", "judge")],
            "INVALID_ARGUMENT",
            ["Duplicate evaluation of signature", "regress"],
        ),
        (
            [(CLASSIFY, "", "judge"), (CLASSIFY, "serving_default", "judge")],
            "INVALID_ARGUMENT",
            ["Duplicate evaluation of signature", "serving_default"],
        ),
        ([(PREDICT, "regress", "judge")], "UNIMPLEMENTED", ["method_name", PREDICT, CLASSIFY]),
        ([(REGRESS, "nothing", "judge")], "INVALID_ARGUMENT", ["nothing", "regress"]),
        ([(REGRESS, "only_scores", "judge")], "INVALID_ARGUMENT", ['"outputs"', "scores"]),
        ([(CLASSIFY, "regress", "judge")], "INVALID_ARGUMENT", ['"classes"', "outputs"]),
        ([(REGRESS, "regress_pairs", "judge")], "INVALID_ARGUMENT", ["[2,2]"]),
    ],
)
def test_wrong_tasks_are_refused(judge, given, error_of, tasks, code, words):
    got_code, message = error_of(judge.infer, given, *tasks)
    assert got_code == code, message
    assert all(word in message for word in words), message


def test_one_wrong_task_fails_the_call(judge, given, error_of):
    tasks = [(REGRESS, "regress", "judge"), (CLASSIFY, "uneven", "judge")]
    assert error_of(judge.infer, given, *tasks).code == "INVALID_ARGUMENT"


def test_a_request_without_examples_is_refused(judge, error_of):
    code, message = error_of(judge.infer, input_pb2.Input(), (REGRESS, "regress", "judge"))
    assert (code, "Input is empty" in message) == ("INVALID_ARGUMENT", True)


def test_method_names_count_only_where_the_flag_says_so(strict_judge, given, error_of):
    assert strict_judge.infer(given, (REGRESS, "regress", "judge")).results
    code, message = error_of(strict_judge.infer, given, (REGRESS, "regress_column", "judge"))
    assert code == "INVALID_ARGUMENT"
    assert "method_name" in message
