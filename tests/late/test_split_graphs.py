"""Graphs drawn at random around products, sums and concatenations of several domains' columns."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import Columns, variable
from .test_domains import staged

SOURCES = ("age", "price", "size", "budget", "position")
Draw = Callable[[st.SearchStrategy[Any]], Any]


class _Drawn:
    """A model drawn from what a splitter follows, in any order."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._names = 0

    def score(self, columns: Columns) -> Columns:
        """What the last product gives, of columns that several steps have changed."""
        x = self._joined(columns)
        for _ in range(self._draw(st.integers(0, 3))):
            x = self._changed(x, columns)
        wide = tf.reduce_sum(x * self._variable(x.shape[-1]), 1, keepdims=True)
        hidden = self._multiplied(x)
        return {"score": wide + tf.matmul(hidden, self._variable(hidden.shape[-1], 1))}

    def _joined(self, columns: Columns) -> Any:
        more = self._draw(st.lists(st.sampled_from(SOURCES), max_size=5))
        names = self._draw(st.permutations(["age", "price", *more]))
        return tf.concat([columns[name] for name in names], 1)

    def _changed(self, x: Any, columns: Columns) -> Any:
        width = x.shape[-1]
        steps: dict[str, Callable[[], Any]] = {
            "scale": lambda: x * self._variable(width),
            "subtract from": lambda: self._variable(1, width) - x,
            "halve": lambda: x / 2.0,
            "squash": lambda: tf.tanh(x),
            "gate": lambda: x * tf.sigmoid(x),
            "join more": lambda: tf.concat([columns["size"], x, columns["age"]], 1),
            "join itself": lambda: tf.concat([x, tf.nn.relu(x)], 1),
            "add what is elsewhere": lambda: x + tf.reverse(x, [1]),
            "add a cross": lambda: x + x * tf.matmul(x, self._variable(width, 1)),
        }
        return steps[self._draw(st.sampled_from(sorted(steps)))]()

    def _multiplied(self, x: Any) -> Any:
        units = self._draw(st.sampled_from([1, 3, 8, 40]))
        if self._draw(st.booleans()):
            product = tf.matmul(x, self._variable(units, x.shape[-1]), transpose_b=True)
        else:
            product = tf.matmul(x, self._variable(x.shape[-1], units))
        return tf.nn.relu(product + self._variable(units))

    def _variable(self, *shape: int) -> Any:
        self._names += 1
        return variable(f"drawn{self._names}", *shape)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_a_graph_cut_into_stages_scores_as_it_does_whole(model: Any, data: Any) -> None:
    stages = staged(model, _Drawn(data.draw).score)
    for candidates, shops, campaigns in ((1, 1, 1), (23, 4, 2)):
        users = min(3, candidates) if stages.report.users_per_run == "many" else 1
        counts = {"user": users, "shop": shops, "campaign": campaigns}
        stages.check(candidates, counts, stages.built.rows(candidates))
