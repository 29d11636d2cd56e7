"""The ranking of titles: the cross-encoder, BM25, and late interaction."""

import json
from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from colcast.cli.main import main as colcast
from colcast.client import AsyncTextClient, InputError, RankingClient, TextClient
from colcast.server import ServerProcess
from colcast.zoo.text import late_interaction, reranker
from colcast.zoo.text.reuters import BM25, Story

from .reference import token_vectors, tokens

QUERY = "cocoa prices fell in the second week of the month"
TITLES = [
    "BAHIA COCOA REVIEW",
    "",
    "Ministers meet in Vienna to talk about oil",
    "Cocoa futures fall again as buyers wait " * 3,
]


def pair(query, title, vocabulary, longest=128):
    """The tokens of a query and a title, and their kinds, computed without the model."""
    first = tokens(query, vocabulary, 10_000)[1:-1][: longest // 2]
    second = tokens(title, vocabulary, 10_000)[1:-1][: longest - len(first) - 3]
    numbers = [101, *first, 102, *second, 102]
    return numbers, [0] * (len(first) + 2) + [1] * (len(second) + 1)


@pytest.fixture(scope="module")
def values(minilm):
    return reranker.start(minilm)


@pytest.fixture(scope="module")
def base(tmp_path_factory, minilm, values):
    """The base path of a model whose head is not trained."""
    base = tmp_path_factory.mktemp("reranker")
    reranker.save(reranker.Reranker(minilm, values), base / "1")
    return base


@pytest.fixture(scope="module")
def expected(minilm, values, vocabulary):
    def scores(query, titles):
        pairs = [pair(query, title, vocabulary) for title in titles]
        first = [token_vectors(numbers, minilm, kinds)[0] for numbers, kinds in pairs]
        return (np.stack(first) @ values["head/kernel"])[:, 0]

    return scores


@pytest.fixture(scope="module")
def address(base):
    with ServerProcess("reranker", base) as server:
        yield server.target


def test_scores_are_those_of_each_pair(address, expected):
    with TextClient(address, "reranker") as client:
        ranking = client.rank(QUERY, TITLES)
    np.testing.assert_allclose(ranking.scores, expected(QUERY, TITLES), atol=1e-5)
    assert ranking.order.tolist() == np.argsort(-ranking.scores).tolist()


@pytest.mark.parametrize("query", ["", "word " * 200])
def test_long_and_empty_queries_leave_room_for_titles(address, expected, query):
    titles = ["one title", "word " * 300]
    with TextClient(address, "reranker") as client:
        scores = client.rank(query, titles).scores
    np.testing.assert_allclose(scores, expected(query, titles), atol=1e-5)


def test_no_titles_have_no_scores(address):
    with TextClient(address, "reranker") as client:
        assert client.rank(QUERY, []).scores.shape == (0,)


async def test_the_asyncio_client_ranks_the_same(address, expected):
    async with AsyncTextClient(address, "reranker") as client:
        ranking = await client.rank(QUERY, TITLES)
    np.testing.assert_allclose(ranking.scores, expected(QUERY, TITLES), atol=1e-5)


def test_titles_must_be_a_list():
    with (
        TextClient("127.0.0.1:1", "nobody") as client,
        pytest.raises(InputError, match="titles must be a list of texts, got 'one title'"),
    ):
        client.rank(QUERY, "one title")


def test_colcast_rerank_prints_the_best_lines(address, expected, capsys, tmp_path):
    (tmp_path / "titles.txt").write_text("\n".join(TITLES) + "\n")
    arguments = ["rerank", str(tmp_path / "titles.txt"), "--server", address, "--query", QUERY]
    assert colcast([*arguments, "--json", "--top", "2"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    best = np.argsort(-expected(QUERY, TITLES))[:2]
    assert [row["line"] - 1 for row in rows] == best.tolist()
    assert [row["title"] for row in rows] == [TITLES[n] for n in best]


def test_bm25_prefers_rare_words_and_short_titles():
    titles = ["the oil price", "the oil price of the whole long year", "the cocoa", "the sun"]
    scores = BM25(titles).scores("the cocoa OIL")
    assert scores.argsort().tolist()[::-1] == [2, 0, 1, 3]
    assert BM25(titles).scores("nothing here").tolist() == [0, 0, 0, 0]


def test_a_model_is_judged_by_where_it_puts_the_right_headline():
    stories = [
        Story(f"oil {number}", (f"oil {number} and more words that make a query of",))
        for number in range(30)
    ]
    first = reranker.evaluate(lambda _, titles: -np.arange(len(titles)), stories, [3, 4])
    second = reranker.evaluate(
        lambda _, titles: np.array([1.0, 2.0] + [0.0] * (len(titles) - 2)), stories, [3, 4]
    )
    last = reranker.evaluate(lambda _, titles: np.zeros(len(titles)), stories, [3, 4])
    assert first.ndcg == first.ndcg_bm25 == 1
    assert second.ndcg == pytest.approx(1 / np.log2(3))
    assert last.ndcg == 0


FOUR = [
    "BAHIA COCOA REVIEW",
    "",
    "Ministers meet in Vienna to talk about oil",
    "cocoa " * 50,
]


@pytest.fixture(scope="module")
def summed(minilm, vocabulary):
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


def test_scores_are_the_sums_of_the_nearest_tokens(target, summed):
    with RankingClient(target, "titles", timeout_seconds=60) as client:
        for _ in range(2):  # the second time, states are cached
            ranking = client.rank({"query": QUERY}, {"title": FOUR}, target="late")
            np.testing.assert_allclose(ranking.scores, summed(QUERY, FOUR), atol=1e-4)


def test_several_queries_share_a_request(target, summed):
    with RankingClient(target, "titles", timeout_seconds=60) as client:
        asked = [({"query": query}, {"title": FOUR}) for query in (QUERY, "oil", "")]
        for (user, _), ranking in zip(asked, client.rank_many(asked), strict=True):
            np.testing.assert_allclose(ranking.scores, summed(user["query"], FOUR), atol=1e-4)


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
