"""Users and items that come back."""

from itertools import islice

import numpy as np
import pytest
from colcast.zoo.catalog import Catalog, Zipf
from colcast.zoo.wide import WIDE


def test_a_row_has_the_same_features_whenever_it_comes():
    catalog = Catalog(WIDE, "item", 50, seed=1)
    first, again = (catalog.columns(np.array(rows)) for rows in ([3, 7], [7]))
    assert first.keys() == {name for name in WIDE.dtypes if name.startswith("item")}
    for name, values in first.items():
        assert values[1] == again[name][0]


def test_strings_are_texts_as_the_models_requests_have_them():
    columns = Catalog(WIDE, "user", 5, seed=1).columns(np.arange(5))
    assert all(text.startswith("u") for text in columns["user_002"])


@pytest.mark.parametrize("exponent", [0.8, 1.0])
def test_the_most_popular_is_drawn_as_often_as_zipf_says(exponent: float):
    draws = islice(Zipf(100, exponent).draws(1, seed=5), 20_000)
    counts = np.sort(np.bincount(np.concatenate(list(draws)), minlength=100))[::-1]
    chances = 1 / np.arange(1, 101) ** exponent
    expected = 20_000 * chances / chances.sum()
    assert counts[:5] == pytest.approx(expected[:5], rel=0.1)


def test_what_is_drawn_together_is_different_and_the_same_for_a_seed():
    zipf = Zipf(30)
    one, two = (list(islice(zipf.draws(20, seed=2), 5)) for _ in range(2))
    assert all(len(set(drawn.tolist())) == 20 for drawn in one)
    assert np.array_equal(one, two)
