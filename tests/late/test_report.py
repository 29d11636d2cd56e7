"""The report, including the cache hits that recorded requests would have had."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.cut._stages_report import Reuse, count_reuse
from colcast.export.graph import _comparison
from colcast.export.graph._comparison import PROOF_ROWS

Columns = dict[str, Any]
COLUMNS = {"age": (tf.float32, [2]), "seen": (tf.int64, [None]), "price": (tf.float32, [2])}
COLUMNS |= {"seen/length": (tf.int64, [])}


def _score(c: Columns) -> Columns:
    user = tf.nn.softmax(tf.exp(-tf.abs(c["age"])), axis=1)
    return {"score": tf.reduce_sum(user * c["price"], 1)}


def test_counts_ops_and_lists_the_frontier(model: Any) -> None:
    report = model(_score, COLUMNS, ["age", "seen"]).report
    assert (report.user_ops, report.ops) == (4, 6)
    assert set(report.user_features) == {"age", "seen", "seen/length"}
    assert report.item_features == ("price",)
    (tensor,) = report.frontier
    assert (tensor.name, tensor.dtype, tensor.shape) == ("Softmax:0", "float32", (1, 2))
    assert tensor.how == "broadcast"
    assert set(report.proof) == set(PROOF_ROWS)
    assert 0 < report.user_time_share < 1
    assert report.timed_rows == 100
    assert report.columnar_ms > 0
    assert report.late_ms > 0


def test_console_lines_have_the_essentials(model: Any) -> None:
    first, second, *rest = model(_score, COLUMNS, ["age", "seen"]).report.lines()
    assert first.startswith("columnar_late: 4 of 6 ops run once per request")
    assert "at 1, 2, 7, 64 candidates, largest relative difference" in second
    assert "    1 x float32 [1, 2], broadcast: Softmax:0" in rest


def test_refusals_are_given_with_what_was_seen(model: Any) -> None:
    def build(c: Columns) -> Columns:
        count = tf.shape(c["age"])[0]
        return {"score": tf.reshape(c["price"] + 1.0, [count, 2])}

    refused = model(build, COLUMNS, ["age"]).report.refused
    assert refused["strided_slice"] == "changes with the rows: 1 at 1, 2 at 2, 3 at 3, 64 at 64"


def test_no_user_feature_means_expansion_at_the_input(model: Any) -> None:
    built = model(_score, COLUMNS, [])
    built.check()
    assert built.report.user_ops == 0
    assert built.report.why_nothing_moved() == "no feature is the user's"


def test_features_that_meet_at_once_mean_expansion_at_the_input(model: Any) -> None:
    def build(c: Columns) -> Columns:
        together = tf.concat([c["age"], c["price"]], axis=1)
        return {"score": tf.nn.softmax(together)}

    built = model(build, COLUMNS, ["age"])
    built.check()
    assert "reads an item feature, too" in built.report.why_nothing_moved()
    assert any("nothing moved" in line for line in built.report.lines())


def test_a_difference_on_large_floats_only_is_reported(model: Any, monkeypatch: Any) -> None:
    """Treats values above 1 as large, because few models differ only on truly large floats."""

    def apart(expected: Any, given: Any, *_: Any) -> Any:
        return np.where(np.abs(expected) > 1, 0.005, np.zeros(expected.shape))

    monkeypatch.setattr(_comparison, "relative_difference", apart)
    report = model(
        lambda c: {"score": tf.tanh(c["age"])[:, 0] * c["price"][:, 0]}, COLUMNS, ["age"]
    ).report
    assert report.moderated == {"score": 0.005}
    assert max(by["score"] for by in report.proof.values()) == 0
    assert json.loads(json.dumps(report.to_json()))["moderated"] == {"score": 0.005}
    line = "  score differs by 5.0e-03 on large floats; it agrees on floats between -1 and 1"
    assert line in report.lines()


def test_report_is_plain_json(model: Any) -> None:
    report = model(_score, COLUMNS, ["age"]).report
    read = json.loads(json.dumps(report.to_json()))
    assert read["signature"] == "columnar_late"
    assert read["frontier"][0]["shape"] == [1, 2]
    assert read["proof"]["64"].keys() == {"score"}


def test_a_loop_that_stays_at_n_rows_is_named_if_late_does_not_help(model: Any) -> None:
    def build(c: Columns) -> Columns:
        def step(i: Any, state: Any) -> Any:
            return i + 1, tf.tanh(tf.matmul(state, tf.ones([200, 200])) * 0.01)

        state = tf.tile(c["age"], [1, 100])
        state = tf.while_loop(lambda i, _: i < 30, step, [0, state])[1]
        return {"score": tf.reduce_sum(state[:, :2] * c["price"], 1)}

    report = model(build, COLUMNS, ["age", "seen"]).report
    # ignores the times measured on this machine
    no_gain = replace(report, late_ms=report.columnar_ms)
    (line,) = [line for line in no_gain.lines() if "does not help" in line]
    assert "over age stays at N rows: control flow" in line
    assert "unroll=True" in line


def _row(user: bytes, item: bytes, price: bytes = b"1") -> dict[str, bytes]:
    return {"user": user, "item": item, "price": price}


def test_counts_users_per_request_and_items_per_row() -> None:
    requests = [
        [_row(b"ann", b"tea"), _row(b"ann", b"ham")],
        [_row(b"bob", b"tea")],
        [_row(b"ann", b"tea"), _row(b"ann", b"jam")],
    ]
    reuse = count_reuse(requests, ["user"], ["item", "price"])
    assert (reuse.requests, reuse.users_found) == (3, 1)
    assert (reuse.rows, reuse.items_found) == (5, 2)


def test_names_the_feature_that_made_items_new() -> None:
    requests = [[_row(b"ann", item, b"%d" % day)] for day in range(3) for item in (b"tea", b"ham")]
    reuse = count_reuse(requests, ["user"], ["item", "price"])
    assert reuse.items_found == 0
    assert reuse.made_new["price"] == 4  # each would be a hit if the price had not changed
    assert "price alone made 67% of rows miss" in reuse.line()


def test_a_missing_feature_is_a_separate_value() -> None:
    requests = [[{"user": b"ann", "item": b"tea"}], [_row(b"ann", b"tea")]]
    assert count_reuse(requests, ["user"], ["item", "price"]).items_found == 0


def test_nothing_recorded() -> None:
    assert count_reuse([], ["user"], ["item"]) == Reuse(0, 0, 0, 0)
