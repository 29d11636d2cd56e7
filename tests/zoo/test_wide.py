"""The wide model: the sizes asked for, fixed weights, requests that a seed repeats."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from colcast.zoo import wide
from colcast.zoo.examples import serialize, serialize_request

SMALL = wide.Wide(name="small", user_features=5, item_features=4, embedding_width=3, hidden=(8,))


def scores(base_path: Path, examples: list[bytes]) -> np.ndarray:
    signature = tf.saved_model.load(str(base_path / "1")).signatures["serving_default"]
    return signature(examples=tf.constant(examples))["score"].numpy()


def examples(seed: int) -> list[bytes]:
    return serialize_request(*next(wide.requests(SMALL, 6, seed)))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wide.ensure(SMALL, tmp_path_factory.mktemp("zoo"))


def test_features_take_the_three_dtypes_in_turn():
    dtypes = wide.WIDE.dtypes
    assert len(dtypes) == 210
    assert [dtypes[f"user_{n:03}"] for n in range(4)] == [
        tf.int64, tf.float32, tf.string, tf.int64,
    ]  # fmt: skip
    assert sum(name.startswith("item_") for name in dtypes) == 60


def test_a_request_holds_every_feature_once_on_its_side():
    user, items = next(wide.requests(SMALL, 3, seed=1))
    assert len(items) == 3
    assert [*user, *items[0]] == list(SMALL.dtypes)


def test_a_seed_repeats_its_requests_and_no_two_are_equal():
    first, second, again = (
        list(islice(wide.requests(SMALL, 2, seed), 2)) for seed in (1, 2, 1)
    )  # fmt: skip
    assert first == again
    assert first != second
    assert first[0] != first[1]


def test_weights_are_the_same_every_time(small: Path, tmp_path: Path):
    again = wide.ensure(SMALL, tmp_path)
    np.testing.assert_array_equal(scores(small, examples(1)), scores(again, examples(1)))


def test_every_feature_moves_the_score(small: Path):
    user, items = next(wide.requests(SMALL, 1, seed=1))
    row = {**user, **items[0]}
    left_out = [
        serialize({n: v for n, v in row.items() if n != name}) for name in (None, *SMALL.dtypes)
    ]
    whole, *others = scores(small, left_out)
    assert whole not in others


def test_scores_spread_between_zero_and_one(small: Path):
    values = scores(small, examples(1))
    assert values.shape == (6,)
    assert ((values > 0) & (values < 1)).all()
    assert values.std() > 0.01
