"""What the metrics tell of requests made of tf.Examples."""

from ..metrics_page import Metrics


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
