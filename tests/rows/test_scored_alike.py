"""What running rows together and apart shows."""

from typing import Any

import numpy as np
import pytest
from colcast.export.convert._features import Feature, Kind
from colcast.export.graph._errors import ExportError
from colcast.export.trials._parity import scored_alike
from colcast.export.trials._rows import Rows

TOLERANCE = 1e-6


def rows(*values: float) -> Rows:
    price = Feature("price", Kind.FIXED_LEN, "float32", (1,))
    return Rows.of([price], {"price": [[value] for value in values]})


def prices(of: Rows) -> Any:
    return of.columns()["price"][:, 0]


def alike(score: Any, *values: float) -> bool | None:
    return scored_alike(lambda of: {"scores": score(prices(of))}, rows(*values), TOLERANCE)


def test_rows_of_their_own_are_alike():
    assert alike(lambda price: price * 2, 1.0, -2.0, 3.0, 7.0)


def test_rows_that_meet_are_not():
    assert alike(lambda price: price - price.mean(), 1.0, -2.0, 3.0, 7.0) is False


def test_integers_have_no_tolerance():
    assert alike(lambda price: 1_000_000_000 + (price == price.max()), 1.0, 2.0, 3.0) is False


def test_nan_is_like_nan():
    assert alike(lambda price: np.where(price > 2, np.nan, price), 1.0, 2.0, 3.0)


def test_what_large_floats_leave_of_each_other_is_rounding():
    def cancelled(price: Any) -> Any:
        return price + np.float32(1e-4 * len(price)) * (np.abs(price) > 100)

    assert alike(cancelled, 1.0, 500.0, -3.0, 7.0)


@pytest.mark.parametrize("factor", [1e-4, 1.0])
def test_a_small_difference_that_small_floats_have_too_is_none(factor: float):
    assert alike(lambda price: price + factor * price.mean(), 1.0, 2.0, 3.0) is False


def test_a_large_score_hides_no_difference_of_small_ones():
    assert alike(lambda price: price + 0.5 * len(price), 1.0, 1e9, -3.0, 7.0) is False


def test_rows_with_short_lists_are_scored_without_long_ones():
    seen = Feature("seen", Kind.VAR_LEN, "int64", ())
    several = Rows.of([seen], {"seen": [[1] * count for count in (5, 5, 0, 5, 5, 5, 5, 5, 5)]})

    def by_longest(of: Rows) -> Any:
        columns = of.columns()
        empty = columns["seen/length"] == 0
        return {"scores": np.where(empty, columns["seen"].shape[1], 0.5).astype(np.float32)}

    assert scored_alike(by_longest, several, TOLERANCE) is False


def test_a_number_of_rows_is_a_part_of_the_score():
    assert scored_alike(lambda of: {"mean": prices(of)[:1]}, rows(1.0, 2.0), TOLERANCE) is False


def test_what_the_model_refuses_shows_nothing():
    def refuse(_: Rows) -> Any:
        raise ExportError("no such price")

    assert scored_alike(refuse, rows(1.0, 2.0), TOLERANCE) is None
