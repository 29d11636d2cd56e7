"""MaxSim over tokens that were encoded separately; states are found in the caches."""

from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.server import ServerProcess
from colcast.zoo.text import late_interaction

from .reference import token_vectors, tokens

QUERY = "cocoa prices fell in the second week of the month"
TITLES = ["BAHIA COCOA REVIEW", "", "Ministers meet in Vienna to talk about oil", "cocoa " * 50]


@pytest.fixture(scope="module")
def expected(minilm, vocabulary):
    @cache
    def vectors(text):
        rows = token_vectors(tokens(text, vocabulary, late_interaction.TOKENS), minilm)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def scores(query, titles):
        asked = vectors(query)
        return [(asked @ vectors(title).T).max(axis=1).sum() for title in titles]

    return scores


@pytest.fixture(scope="module")
def target():
    stores = ["--user_state_bytes=16777216", "--item_state_bytes=67108864"]
    with ServerProcess("titles", late_interaction.ensure(), stores) as server:
        yield server.target


def test_scores_are_the_sums_of_the_nearest_tokens(target, expected):
    with RankingClient(target, "titles", timeout_seconds=60) as client:
        for _ in range(2):  # computed the first time, found the second time
            ranking = client.rank({"query": QUERY}, {"title": TITLES}, target="late")
            np.testing.assert_allclose(ranking.scores, expected(QUERY, TITLES), atol=1e-4)


def test_several_queries_share_a_request(target, expected):
    with RankingClient(target, "titles", timeout_seconds=60) as client:
        asked = [({"query": query}, {"title": TITLES}) for query in (QUERY, "oil", "")]
        for (user, _), ranking in zip(asked, client.rank_many(asked), strict=True):
            np.testing.assert_allclose(ranking.scores, expected(user["query"], TITLES), atol=1e-4)


def test_users_of_joined_requests_are_refused():
    random, width = np.random.default_rng(0), 8
    states = {
        "user_state/0": random.normal(size=(2, late_interaction.TOKENS, width)),
        "item_state/0": random.normal(size=(5, late_interaction.TOKENS, width)),
        "item_state/1": np.zeros((5, late_interaction.TOKENS)),
        "row_to_user": [0, 1, 1, 0, 1],
    }
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signature = late_interaction.pair_signature(width)

        def scores(numbers):
            given = {**states, "user_state/row": numbers}
            feeds = {signature.inputs[name].name: value for name, value in given.items()}
            return session.run(signature.outputs["scores"].name, feeds)

        assert scores([0, 1]).shape == (5,)
        with pytest.raises(tf.errors.InvalidArgumentError, match="is repeated"):
            scores([0, 0])
    defaults = {name: tf.make_ndarray(value) for name, value in signature.defaults.items()}
    assert defaults == {"row_to_user": [0], "user_state/row": [0]}
