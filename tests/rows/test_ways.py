"""The control flow of TensorFlow 1, where a condition may reach a result by control inputs only."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import tensorflow as tf

from .graphs import Graph

raw = tf.raw_ops
Columns = Mapping[str, Any]


def switched(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """What tf.cond makes of its branches in TensorFlow 1."""
    no, yes = raw.Switch(data=condition, pred=condition)
    with tf.control_dependencies([tf.identity(yes)]):
        first = then()
    with tf.control_dependencies([tf.identity(no)]):
        second = otherwise()
    return raw.Merge(inputs=[second, first]).output


def two_or_one(condition: Any) -> Any:
    """A constant for each way."""
    return switched(condition, lambda: tf.constant(2.0), lambda: tf.constant(1.0))


def a_weight_is_positive() -> Any:
    """The same in every run."""
    return tf.Variable(1.0, use_resource=True) > 0


def nested(c: Columns, condition: Any) -> Any:
    """A condition within the branches of another one."""
    outer = a_weight_is_positive()
    inner = tf.identity(condition)
    return c["f"] * switched(outer, lambda: two_or_one(inner), lambda: two_or_one(inner))


def behind_a_check(c: Columns) -> Any:
    """A branch that is no matter of the rows, behind an assertion that is."""
    with tf.control_dependencies([two_or_one(tf.reduce_all(c["i"] >= 0))]):
        doubled = c["f"] * 2
    return switched(a_weight_is_positive(), lambda: tf.identity(doubled), lambda: c["f"] * 1)


@pytest.mark.parametrize(
    "build",
    [
        lambda c: c["f"] * two_or_one(tf.reduce_any(c["i"] > 2)),
        lambda c: nested(c, tf.reduce_any(c["i"] > 2)),
        lambda c: c["f"] * two_or_one(tf.shape(c["f"])[0] > 3),
    ],
    ids=["on rows", "nested", "on their number"],
)
def test_a_branch_on_rows_mixes_them_though_its_ways_are_constants(build: Any) -> None:
    graph = Graph(build)
    assert not graph.scores_rows_alike(0)
    assert not graph.found.rows
    assert graph.found.why_not


def test_a_branch_on_the_longest_list_is_told() -> None:
    graph = Graph(lambda c: c["f"] * two_or_one(tf.shape(c["ids"])[1] > 3))
    assert graph.found.rows, graph.found.why_not
    assert graph.found.own_length == ("ids",)


@pytest.mark.parametrize(
    "build",
    [lambda c: c["f"] * two_or_one(a_weight_is_positive()), behind_a_check],
    ids=["on a weight", "behind a check"],
)
def test_a_branch_on_what_is_the_same_in_every_run_keeps_rows_apart(build: Any) -> None:
    graph = Graph(build)
    assert graph.found.rows, graph.found.why_not
    assert graph.found.own_length == ()
    assert graph.scores_rows_alike(0)
