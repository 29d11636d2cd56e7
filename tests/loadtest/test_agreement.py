"""Differences between answers: their size and position, rankings, refusals."""

from typing import Any

import numpy as np
import pytest
from colcast.loadtest.compare.agreement import Agreement, OutputAgreement, agreement
from colcast.loadtest.measure.correctness import correlation, overlap
from colcast.loadtest.send.connection import Answer, Request

from .test_closed_loop import response

REQUEST = (Request(b"", rows=1), Request(b"", rows=1))


def answer(**outputs: Any) -> Answer:
    return Answer("OK", response(**outputs), "", 0.0, 0.0)


def refused(code: str, message: str = "") -> Answer:
    return Answer(code, b"", message, 0.0, 0.0)


def found(*answers: tuple[Answer, Answer]) -> Agreement:
    return agreement({"late": [(REQUEST, both) for both in answers]})


def scores(*pairs: tuple[Any, Any]) -> OutputAgreement:
    """Compares an output that has these values in A and in B."""
    (output,) = found(*((answer(score=a), answer(score=b)) for a, b in pairs)).outputs
    return output


def test_the_largest_difference_is_found_with_both_values():
    output = scores(([1.0, 2.0], [1.0, 2.0]), ([3.0, 4.0, 8.0], [3.0, 4.5, 8.25]))
    largest = output.largest_difference
    assert (largest.difference, largest.request, largest.candidate) == (0.5, 1, 1)
    assert (largest.a, largest.b) == (4.0, 4.5)
    assert output.largest_relative_difference.difference == pytest.approx(0.5 / 4.5)
    assert (output.values, output.differing) == (5, 2)
    output = scores(([1e-3, 100.0], [2e-3, 101.0]))
    absolute, relative = output.largest_difference, output.largest_relative_difference
    assert (absolute.candidate, relative.candidate) == (1, 0)
    assert relative.difference == pytest.approx(0.5)


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_a_number_against_nan_is_infinitely_different_and_counted(lost: float):
    output = scores(([1.0, lost, 3.0], [1.0, lost, lost]))
    absolute, relative = output.largest_difference, output.largest_relative_difference
    assert (absolute.difference, relative.difference, absolute.candidate) == (np.inf, np.inf, 2)
    assert output.differing == 1
    assert (output.nan if np.isnan(lost) else output.infinite) == {"A": 1, "B": 2}


@pytest.mark.parametrize(
    ("a", "b", "difference", "candidate"),
    [([b"a", b"b"], [b"a", b"c"], np.inf, 1), (1.0, 3.0, 2.0, None)],
    ids=["strings", "a value for the whole request"],
)
def test_what_is_no_score_has_no_ranking(a: Any, b: Any, difference: float, candidate: int | None):
    output = scores((a, b))
    largest = output.largest_difference
    assert (largest.difference, largest.candidate) == (difference, candidate)
    assert output.rank_correlation is output.top_10_overlap is None


def test_top_candidates_are_of_requests_with_more():
    few, many = np.arange(10.0), np.arange(20.0)
    output = scores((few, -few), (many, many), (many, -many))
    top = output.top_10_overlap
    assert top
    assert (top.mean, top.lowest, top.request) == (0.5, 0.0, 2)
    assert output.rank_correlation
    assert output.rank_correlation.lowest == pytest.approx(-1)
    assert output.rank_correlation.request == 0


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [30, 20, 10], -1.0),
        ([1, 2, 3, 4], [1, 2, 4, 3], 0.8),
        ([1, 1, 2], [5, 5, 9], 1.0),
        ([1, 1, 1], [1, 1, 1], 1.0),
        ([1, 1, 1], [1, 2, 3], 0.0),
        ([np.nan, 1, 2], [0, 1, 2], 1.0),
    ],
)
def test_rank_correlation(one: list, two: list, expected: float):
    assert correlation(np.array(one), np.array(two)) == pytest.approx(expected)


def test_nan_never_ranks_first():
    assert overlap(np.array([np.nan, 3.0, 2.0, 1.0]), np.array([0.0, 3.0, 2.0, 1.0]), 2) == 1


def test_requests_refused_by_one_and_by_both_are_distinguished():
    ok, bad = answer(score=[1.0]), refused("INVALID_ARGUMENT", "no")
    it = found((ok, ok), (ok, bad), (bad, bad), (refused("INTERNAL"), bad))
    assert (it.requests, it.answered) == (4, 1)
    assert it.codes[0] == {"OK": 2, "INVALID_ARGUMENT": 1, "INTERNAL": 1}
    assert [(one.request, one.codes) for one in it.refusals] == [
        (1, ("OK", "INVALID_ARGUMENT")),
        (2, ("INVALID_ARGUMENT", "INVALID_ARGUMENT")),
        (3, ("INTERNAL", "INVALID_ARGUMENT")),
    ]


def test_outputs_of_another_form_are_named_and_not_compared():
    same = answer(score=[1.0], name=[b"x"])
    it = found(
        (same, same),
        (same, answer(score=[[1.0]])),
        (same, answer(score=np.array([1.0], np.float16), name=[b"x"])),
    )
    assert [(one.name, one.requests, one.first, one.form) for one in it.other_forms] == [
        ("name", 1, 1, "string [1] in A, missing in B"),
        ("score", 2, 1, "float32 [1] in A, float32 [1, 1] in B"),
    ]
    assert {one.name: one.values for one in it.outputs} == {"name": 2, "score": 1}
