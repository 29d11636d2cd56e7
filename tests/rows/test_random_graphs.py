"""The rule on graphs that nobody thought of: what it calls independent is, whatever is combined."""

from collections.abc import Sequence

import tensorflow as tf
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from . import list_graphs, random_graphs
from .graphs import Build, Graph

_SEEDS = 3  # of the rows that a graph is tried on


@settings(max_examples=120, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=4, max_size=40))
@example([0, 0, 1, 0, 0, 0])
def test_what_is_called_independent_is(numbers: Sequence[int]) -> None:
    _check(lambda columns: random_graphs.build(columns, numbers))


@settings(max_examples=120, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=4, max_size=24))
def test_what_is_called_independent_of_other_lists_is(numbers: Sequence[int]) -> None:
    _check(lambda columns: list_graphs.build(columns, numbers))


def _check(build: Build) -> None:
    graph = Graph(build)
    if not graph.found.rows:
        assert graph.found.why_not
        return
    for seed in range(_SEEDS):
        try:
            alike = graph.scores_rows_alike(seed, equal_lengths=bool(graph.found.own_length))
        except tf.errors.OpError:  # TensorFlow takes no such rows
            assume(False)
        assert alike, graph.ops
