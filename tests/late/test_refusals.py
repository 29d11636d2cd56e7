"""A refusal gives its reason and leaves the model unchanged."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export.cut._add_late import add_late_signature
from colcast.export.cut._observed import Observed, observe
from colcast.export.graph import _comparison
from colcast.export.graph._errors import ExportError
from colcast.export.rows import Fact
from colcast.export.rows._facts import R
from colcast.export.trials._rows import Cells, Rows

from .conftest import features_of, marked

Columns = dict[str, Any]
COLUMNS = {"user_age": (tf.float32, [2]), "price": (tf.float32, [2])}
FEATURES = marked(features_of(COLUMNS), "user", ["user_age"])


def _score(c: Columns) -> Columns:
    return {"score": tf.reduce_sum(c["user_age"] * c["price"], 1)}


def _named(c: Columns) -> Columns:
    with tf.name_scope("mine"):
        return _score(c)


def _failing(c: Columns) -> Columns:
    return _score(c) | {"bad": tf.reshape(c["user_age"], [-1, 7])}


USER = ["user_age"]


@pytest.mark.parametrize(
    ("build", "user", "options", "message"),
    [
        (_score, [*COLUMNS], {}, r"every feature is the user's \(price, user_age\)"),
        (_score, USER, {"late_signature": "columnar"}, "has a signature 'columnar' already"),
        (_named, USER, {"late_signature": "mine"}, "has nodes under 'mine' already"),
        (_score, USER, {"columnar_signature": "x"}, "no signature 'x' .* the model has: columnar"),
        (_failing, USER, {}, r"fails on generated columns of shapes .*user_age"),
    ],
)
def test_a_refusal_gives_its_reason(
    model: Any, build: Any, user: list[str], options: Columns, message: str
) -> None:
    with pytest.raises(ExportError, match=message):
        model(build, COLUMNS, user, **options)


class _NoUserAtFirst:
    """Trial rows whose dependence on each other shows only in the proof."""

    def __init__(self, wrong_after: int) -> None:
        self._left = wrong_after

    def __call__(self, count: int) -> Rows:
        self._left -= 1
        random = np.random.default_rng(self._left + 1000)
        rows = {name: random.normal(size=(count, 2)).astype(np.float32) for name in COLUMNS}
        if self._left > 0:
            rows["user_age"] *= 1e-12
        counts = np.full(count, 2)
        return Rows(FEATURES, {name: Cells(values, counts) for name, values in rows.items()})


def _position_times_user(c: Columns) -> Columns:
    each = tf.cumsum(tf.cast(c["user_age"] * 1e6, tf.int32), axis=0)
    return _score(c | {"user_age": tf.cast(each, tf.float32)})


def _observed(built: Any, **options: Any) -> Observed:
    rows = _NoUserAtFirst(8)
    return observe(built.meta_graph, built.session, features=FEATURES, rows=rows, **options)


def test_ops_over_rows_are_not_the_users_even_if_no_trial_shows_it(model: Any) -> None:
    built = model(_position_times_user, COLUMNS, ["user_age"])
    report = add_late_signature(built.meta_graph, _observed(built), late_signature="right")
    assert max(max(by_output.values()) for by_output in report.proof.values()) == 0
    assert "Cumsum" in "".join(report.refused.values())


@pytest.fixture(name="without_the_rule")
def _without_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the independence rule by one that allows everything, so the proof fails."""

    class Allowed(dict[str, Fact]):
        def __missing__(self, _: str) -> Fact:
            return Fact("rows", (R, (2,)))

    monkeypatch.setattr(
        "colcast.export.cut._observed.Walk", lambda *_: SimpleNamespace(facts=Allowed())
    )


@pytest.mark.usefixtures("without_the_rule")
def test_failed_proof_names_output_row_and_frontier_and_changes_nothing(model: Any) -> None:
    built = model(_position_times_user, COLUMNS, ["user_age"])
    before = type(built.before)()
    before.CopyFrom(built.before)
    with pytest.raises(ExportError) as error:
        add_late_signature(before, _observed(built), late_signature="wrong")
    message = str(error.value)
    assert "output 'score', row 1 of 2" in message
    assert "tolerance 1e-05" in message
    assert "frontier tensor last accepted: Cast_1:0 (float32 [1, 2] at one row" in message
    assert before == built.before


@pytest.mark.usefixtures("without_the_rule")
def test_a_looser_tolerance_lets_a_difference_pass(model: Any) -> None:
    built = model(_position_times_user, COLUMNS, ["user_age"])
    observed = _observed(built, tolerance=1e9)
    report = add_late_signature(built.meta_graph, observed, late_signature="loose")
    assert max(max(by_output.values()) for by_output in report.proof.values()) > 0.1


def test_no_user_feature_means_expansion_at_the_input(model: Any) -> None:
    built = model(_score, COLUMNS, [])
    built.check()
    assert built.report.user_ops == 0
    assert built.report.why_nothing_moved() == "no feature is the user's"


def test_features_that_meet_at_once_mean_expansion_at_the_input(model: Any) -> None:
    def build(c: Columns) -> Columns:
        together = tf.concat([c["user_age"], c["price"]], axis=1)
        return {"score": tf.nn.softmax(together)}

    built = model(build, COLUMNS, ["user_age"])
    built.check()
    assert "reads an item feature, too" in built.report.why_nothing_moved()


def test_a_difference_on_large_floats_only_is_reported(model: Any, monkeypatch: Any) -> None:
    """Treats values above 1 as large, because few models differ only on truly large floats."""

    def apart(expected: Any, given: Any, *_: Any) -> Any:
        return np.where(np.abs(expected) > 1, 0.005, np.zeros(expected.shape))

    monkeypatch.setattr(_comparison, "relative_difference", apart)
    report = model(
        lambda c: {"score": tf.tanh(c["user_age"])[:, 0] * c["price"][:, 0]}, COLUMNS, ["user_age"]
    ).report
    assert report.moderated == {"score": 0.005}
    assert max(by["score"] for by in report.proof.values()) == 0
