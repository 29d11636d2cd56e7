"""The ranking of titles by the cross-encoder."""

import numpy as np
import pytest
from colcast.client import AsyncTextClient, TextClient
from colcast.server import ServerProcess
from colcast.zoo.text import reranker

from .conftest import token_vectors, tokens

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
        assert client.rank(QUERY, []).scores.shape == (0,)
    np.testing.assert_allclose(ranking.scores, expected(QUERY, TITLES), atol=1e-5)
    assert ranking.order.tolist() == np.argsort(-ranking.scores).tolist()


@pytest.mark.parametrize("query", ["", "word " * 200])
def test_long_and_empty_queries_leave_room_for_titles(address, expected, query):
    titles = ["one title", "word " * 300]
    with TextClient(address, "reranker") as client:
        scores = client.rank(query, titles).scores
    np.testing.assert_allclose(scores, expected(query, titles), atol=1e-5)


async def test_the_asyncio_client_ranks_the_same(address, expected):
    async with AsyncTextClient(address, "reranker") as client:
        ranking = await client.rank(QUERY, TITLES)
    np.testing.assert_allclose(ranking.scores, expected(QUERY, TITLES), atol=1e-5)


PAIRS = [(f"oil story {number}", f"oil {number}") for number in range(50)]


@pytest.mark.parametrize(
    ("score", "ndcg"),
    [
        (lambda place: -place, 1),
        (lambda place: np.where(place == 1, 2, -place), 1 / np.log2(3)),
        (lambda place: 0 * place, 0),
    ],
    ids=["first", "second", "all equal"],
)
def test_a_model_is_judged_by_where_it_puts_the_right_title(score, ndcg):
    found = reranker.evaluate(lambda _, titles: score(np.arange(len(titles))), PAIRS, PAIRS[:3])
    assert (found.queries, found.candidates) == (3, 50)
    assert found.ndcg == pytest.approx(ndcg)


def test_training_changes_the_head_and_the_upper_layers(minilm, values):
    trained = reranker.train(minilm, PAIRS[:8])
    changed = {name for name, value in trained.items() if (value != values[name]).any()}
    assert {"head/kernel", "head/bias"} <= changed
    lower = {name for name in changed if name[:2] in {"0/", "1/", "2/"}}
    assert lower == set()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nno tab\n", "line 2: expected QUERY, tab, TITLE, got 'no tab'"),
        ("a\tb\tc\n", "line 1: expected QUERY, tab, TITLE"),
        ("a\tb\n" * 100, "has 1 different titles; at least 40 are needed"),
    ],
)
def test_a_file_of_pairs_that_cannot_be_used_is_refused(tmp_path, text, message):
    (tmp_path / "pairs.tsv").write_text(text)
    with pytest.raises(ValueError, match=message):
        reranker.read_pairs(tmp_path / "pairs.tsv")
