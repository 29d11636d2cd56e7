"""The rule on random graphs, and on programs whose verdicts are known."""

from collections.abc import Sequence
from typing import Any

from colcast.export.rows._op import RULES

from .cases import INDEPENDENT, LENGTHS, MIXING, NO_CLASS
from .fuzz import Tally, Verdict, fuzz

GRAPHS = 80  # of `make fuzz` there are as many as its time allows
_TOGETHER = 20
_NO_CASE = {"LookupTableFind"}  # takes a reference, of TensorFlow 1; as LookupTableFindV2


def test_reported_independence_is_real() -> None:
    tally = Tally()
    for first in range(0, GRAPHS, 10):
        fuzz(range(first, first + 10), tally)
    assert not tally.unsound, "\n\n".join(tally.unsound)
    assert tally.graphs == GRAPHS
    assert tally.independent > tally.tensors / 4
    assert tally.without_run < tally.independent / 20


def judged(programs: Sequence[Any], tally: Tally) -> dict[Any, Verdict]:
    """The verdicts on programs; those that are called independent are so."""
    found = dict[Any, Verdict]()
    for first in range(0, len(programs), _TOGETHER):
        some = programs[first : first + _TOGETHER]
        found |= zip(some, fuzz(range(len(some)), tally, some), strict=True)
    assert not tally.unsound, "\n\n".join(tally.unsound)
    return found


def test_each_class_of_ops_has_independent_programs_or_ones_that_name_lists() -> None:
    tally = Tally()
    expected: dict[Any, Verdict] = dict.fromkeys(INDEPENDENT, (True, ()))
    for lists, programs in LENGTHS.items():
        expected |= dict.fromkeys(programs, (True, lists))
    assert judged(list(expected), tally) == expected
    assert tally.without_run == 0
    assert RULES.keys() - tally.ops == _NO_CASE


def test_programs_that_mix_rows_are_refused_with_the_reason() -> None:
    found = judged(list(MIXING), Tally())
    assert not [program for program, (rows, _) in found.items() if rows]
    assert not {p: (MIXING[p], why) for p, (_, why) in found.items() if MIXING[p] not in str(why)}


def test_ops_that_no_class_covers_are_refused() -> None:
    assert RULES.keys().isdisjoint(NO_CLASS.split())
