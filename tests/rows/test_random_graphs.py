"""The rule on random graphs, and on programs that it once judged wrongly."""

import pytest

from .found import FOUND
from .fuzz import Tally, fuzz

GRAPHS = 80  # of `make fuzz` there are as many as its time allows


def test_reported_independence_is_real() -> None:
    tally = Tally()
    for first in range(0, GRAPHS, 10):
        fuzz(range(first, first + 10), tally)
    assert not tally.unsound, "\n\n".join(tally.unsound)
    assert tally.graphs == GRAPHS
    assert tally.independent > tally.tensors / 4
    assert tally.without_run < tally.independent / 20


@pytest.mark.parametrize("name", FOUND)
def test_rows_that_were_once_called_independent_are_not(name: str) -> None:
    tally = Tally()
    fuzz([0], tally, [FOUND[name]])
    assert tally.tensors
    assert not tally.unsound, "\n\n".join(tally.unsound)
