"""The trained ranking model, through its exported tf.Example signature."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.zoo.examples import serialize, serialize_request
from colcast.zoo.movielens import train
from colcast.zoo.movielens.features import Candidates, RankingRequest
from colcast.zoo.movielens.model import EXAMPLE_SPEC

Scorer = Callable[[list[bytes]], np.ndarray]


@pytest.fixture(scope="module")
def trained() -> tuple[Any, train.TrainingReport]:
    return train.ensure(train.WORK_DIR)


@pytest.fixture(scope="module")
def request_405(trained: tuple[Any, train.TrainingReport]) -> RankingRequest:
    return Candidates(trained[0]).of(405)


@pytest.fixture(scope="module")
def score(trained: tuple[Any, train.TrainingReport]) -> Scorer:
    model = tf.saved_model.load(str(train.WORK_DIR / "model" / "1"))
    signature = model.signatures["serving_default"]
    return lambda examples: signature(examples=tf.constant(examples))["score"].numpy()


def test_it_ranks_better_than_a_linear_model(trained: tuple[Any, train.TrainingReport]):
    assert trained[1].auc > 0.785


def test_rows_carry_exactly_the_features_the_signature_parses(request_405: RankingRequest):
    assert {**request_405.user_row, **request_405.items[0]}.keys() == EXAMPLE_SPEC.keys()


def test_scores_are_one_probability_a_row(score: Scorer, request_405: RankingRequest):
    scores = score(serialize_request(request_405.user_row, request_405.items))
    assert scores.shape == (945,)
    assert ((scores > 0) & (scores < 1)).all()
    assert scores.std() > 0.01


def test_a_row_scores_the_same_alone_and_in_company(score: Scorer, request_405: RankingRequest):
    """Padding to the longest title of the request must not leak into other rows."""
    examples = serialize_request(request_405.user_row, request_405.items[:50])
    together = score(examples)
    alone = np.concatenate([score([example]) for example in examples])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_left_out_features_take_their_defaults(score: Scorer, request_405: RankingRequest):
    row = {**request_405.user_row, **request_405.items[0]}
    explicit = row | {"movie_mean_rating": 3.5, "movie_rating_count": 0, "movie_year": 0}
    left_out = {name: value for name, value in row.items() if name not in (
        "movie_mean_rating", "movie_rating_count", "movie_year")}  # fmt: skip
    assert score([serialize(left_out)]) == score([serialize(explicit)])


def test_unknown_ids_and_words_are_scored_too(score: Scorer, request_405: RankingRequest):
    row = {**request_405.user_row, **request_405.items[0]}
    row |= {"user_id": 10**12, "movie_id": -7, "movie_title": ["zzz"], "user_occupation": "\x00"}
    assert np.isfinite(score([serialize(row)])).all()


def test_the_area_under_the_curve_counts_ties_as_half():
    scores = np.array([0.1, 0.4, 0.4, 0.8])
    liked = np.array([0.0, 0.0, 1.0, 1.0])
    assert train.area_under_curve(scores, liked) == pytest.approx((1 + 0.5 + 1 + 1) / 4)


def test_a_value_no_example_can_hold_names_its_feature():
    with pytest.raises(TypeError, match=r"'user_age': a tf\.Example holds no NoneType"):
        serialize({"user_age": None})
