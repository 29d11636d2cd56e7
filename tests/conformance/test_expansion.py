"""The expansion rule, tested from outside case by case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
import numpy as np
import pytest

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def floats(*values: Any) -> Any:
    return np.array(values, np.float32)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


@dataclass
class Legal:
    """A request that an expanding server answers, and stock TF Serving's reaction to it."""

    name: str
    signature: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    stock_answers: bool = False


LEGAL = [
    Legal(
        "all_rows_sent",
        "serving_default",
        {"user": floats(1, 2, 3), "item": floats(4, 5, 6)},
        {"score": [104, 205, 306], "item": [4, 5, 6]},
        stock_answers=True,
    ),
    Legal(
        "user_once",
        "serving_default",
        {"user": floats(1), "item": floats(4, 5, 6)},
        {"score": [104, 105, 106], "item": [4, 5, 6]},
    ),
    Legal(
        "item_once",
        "serving_default",
        {"user": floats(1, 2, 3), "item": floats(4)},
        {"score": [104, 204, 304], "item": [4, 4, 4]},
    ),
    Legal(
        "one_candidate",
        "serving_default",
        {"user": floats(1), "item": floats(4)},
        {"score": [104]},
        stock_answers=True,
    ),
    Legal(
        "no_candidate",
        "serving_default",
        {"user": zeros(0), "item": zeros(0)},
        {"score": []},
        stock_answers=True,
    ),
    Legal(
        "a_thousand_candidates",
        "serving_default",
        {"user": floats(2), "item": np.arange(1000, dtype=np.float32)},
        {"score": 200 + np.arange(1000)},
    ),
    Legal(
        "inner_dimensions_are_repeated_whole",
        "inner",
        {
            "vector": floats([1, 2, 3]),
            "history": np.array([[5, 6]], np.int64),
            "item": floats(7, 8),
        },
        {"parts": [[321, 11, 7], [321, 11, 8]]},
    ),
    Legal(
        "an_empty_history",
        "inner",
        {"vector": floats([1, 2, 3]), "history": np.zeros((1, 0), np.int64), "item": floats(7, 8)},
        {"parts": [[321, 0, 7], [321, 0, 8]]},
    ),
    Legal(
        "scalars_and_fixed_first_dimensions_stay",
        "fixed",
        {
            "scale": np.float32(2),
            "weights": floats(10, 1),
            "user": floats(1),
            "item": floats(4, 5, 6),
        },
        {"score": [28, 30, 32]},
    ),
    Legal(
        "a_fixed_first_dimension_is_no_row_count",
        "fixed",
        {"scale": np.float32(2), "weights": floats(10, 1), "user": floats(1), "item": floats(4)},
        {"score": [28]},
        stock_answers=True,
    ),
    Legal(
        "unknown_rank_passes_as_it_came",
        "any_rank",
        {"user": zeros(1, 2, 5), "item": floats(1, 2, 3)},
        {"shape": [1, 2, 5]},
        stock_answers=True,
    ),
    Legal(
        "unknown_rank_does_not_count",
        "any_rank",
        {"user": zeros(3, 2), "item": floats(1)},
        {"shape": [3, 2], "item": [1]},
        stock_answers=True,
    ),
    Legal(
        "unknown_rank_sent_a_scalar",
        "any_rank",
        {"user": np.float32(1), "item": floats(1, 2)},
        {"shape": [], "item": [1, 2]},
        stock_answers=True,
    ),
    Legal(
        "a_default_is_expanded",
        "defaults",
        {"item": floats(4, 5, 6)},
        {"score": [704, 705, 706]},
    ),
    Legal(
        "a_default_of_one_candidate",
        "defaults",
        {"item": floats(4)},
        {"score": [704]},
        stock_answers=True,
    ),
    Legal(
        "a_default_is_overridden",
        "defaults",
        {"user": floats(1), "item": floats(4, 5)},
        {"score": [104, 105]},
    ),
    Legal(
        "late",
        "late",
        {"user": floats(1), "item": floats(4, 5, 6)},
        {"score": [104, 105, 106]},
        stock_answers=True,
    ),
    Legal(
        "alone_without_its_last_dimension",
        "alone",
        {"x": floats(1, 2, 5)},
        {"y": [2.5, 3, 4.5]},
        stock_answers=True,
    ),
    Legal("alone_as_a_scalar", "alone", {"x": np.float32(2)}, {"y": 3}, stock_answers=True),
]


@pytest.mark.parametrize("case", LEGAL, ids=lambda case: case.name)
def test_legal(predict: Callable[..., Any], stock: bool, case: Legal) -> None:
    answer = predict(case.signature, case.inputs)
    if stock and not case.stock_answers:
        answer.refused(INVALID)
        return
    for name, expected in case.outputs.items():
        np.testing.assert_array_equal(answer.output(name), expected)


@dataclass
class Illegal:
    """A request that fails, with the same code on every server.

    `culprits` are words in our messages; stock TF Serving's messages have less detail.
    """

    name: str
    signature: str
    inputs: dict[str, Any]
    culprits: tuple[str, ...]


ILLEGAL = [
    Illegal(
        "every_offender_is_named",
        "inner",
        {"vector": zeros(2, 3), "history": np.zeros((3, 1), np.int64), "item": zeros(4)},
        ('"vector"', "2 rows", '"history"', "3 rows", "N = 4", '"item"'),
    ),
    Illegal(
        "another_dtype",
        "serving_default",
        {"user": np.array([1], np.int64), "item": floats(4)},
        ('"user"', "int64", "float"),
    ),
    Illegal(
        "late_user_sent_on_every_row",
        "late",
        {"user": floats(1, 2, 3), "item": floats(4, 5, 6)},
        ('"user"', "[3]", "[1]"),
    ),
    Illegal(
        "missing_without_default",
        "serving_default",
        {"item": floats(4, 5, 6)},
        ("user",),
    ),
    Illegal(
        "unknown_input",
        "serving_default",
        {"user": floats(1), "item": floats(4), "other": floats(4)},
        ("other",),
    ),
]


@pytest.mark.parametrize("case", ILLEGAL, ids=lambda case: case.name)
def test_illegal(predict: Callable[..., Any], stock: bool, case: Illegal) -> None:
    predict(case.signature, case.inputs).refused(INVALID, *(() if stock else case.culprits))
