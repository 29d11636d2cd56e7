"""MultiInference through TF Serving's own stub, and its metrics."""

import pytest

from ..metrics_page import Metrics

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
            [(CLASSIFY, "", "judge"), (CLASSIFY, "serving_default", "judge")],
            "INVALID_ARGUMENT",
            ["Duplicate evaluation of signature", "serving_default"],
        ),
        ([(PREDICT, "regress", "judge")], "UNIMPLEMENTED", ["method_name", PREDICT, CLASSIFY]),
    ],
)
def test_wrong_tasks_are_refused(judge, given, error_of, tasks, code, words):
    got_code, message = error_of(judge.infer, given, *tasks)
    assert got_code == code, message
    assert all(word in message for word in words), message


def test_examples_are_counted_by_model_and_api(judge, make_input, make_example):
    before = Metrics(judge.server)
    user = make_example(user=2.0)
    for count in (1, 5):
        judge.regress(make_input([make_example(item=1.0)] * count, user), "regress")
    judge.classify(make_input([make_example(item=1.0)] * 3, user))
    judge.predict([make_example(item=1.0, user=2.0)] * 7, "regress")
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
