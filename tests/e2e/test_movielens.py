"""The whole path on real people: trained, exported, served and ranked."""

import numpy as np
import pytest
from colcast.client import RankingClient
from colcast.server import ServerProcess
from colcast.zoo.columnar import columnar
from colcast.zoo.examples import serialize_request
from colcast.zoo.movielens import train
from colcast.zoo.movielens.features import Candidates

MODEL = "movielens"
LEAST_AUC = 0.77


@pytest.fixture(scope="module")
def trained():
    """The data and what training reported, made once for all who ask."""
    return train.ensure(train.WORK_DIR)


@pytest.fixture(scope="module")
def server(trained):
    """A server of the exported model."""
    base_path = columnar(train.WORK_DIR / "model", late=True)
    with ServerProcess(MODEL, base_path) as process:
        yield process


@pytest.fixture(scope="module")
def client(server):
    """A client of that server."""
    with RankingClient(server.target, MODEL, timeout_seconds=120) as connected:
        yield connected


@pytest.fixture(scope="module")
def candidates(trained):
    """What every user has not rated."""
    return Candidates(trained[0])


def test_the_model_ranks_better_than_its_floor(trained):
    assert trained[1].auc > LEAST_AUC


def test_examples_are_columnized_with_the_user_found_and_sent_once(client, candidates):
    request = candidates.of(405)
    examples = serialize_request(request.user_row, request.items)
    once = client.encode(examples=examples, target="columnar")
    as_examples = client.encode(examples=examples, target="example")
    assert len(once) < len(as_examples) / 2
    np.testing.assert_array_equal(
        client.predict_examples(examples, target="columnar").scores,
        client.predict_examples(examples, target="example").scores,
    )


def test_the_best_candidate_comes_first(client, candidates):
    request = candidates.of(405)
    ranking = client.rank(request.user_row, request.items)
    best = ranking.top(10)
    assert [entry.score for entry in best] == sorted(ranking.scores, reverse=True)[:10]
    assert best[0].row == int(np.argmax(ranking.scores))
