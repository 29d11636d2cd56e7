"""The whole path on real people: trained, exported, served and ranked, in every format."""

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
LATE_TOLERANCE = 1e-5


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
    with RankingClient(server.target, MODEL, timeout_seconds=30) as connected:
        yield connected


@pytest.fixture(scope="module")
def candidates(trained):
    """What every user has not rated."""
    return Candidates(trained[0])


def test_the_model_ranks_better_than_its_floor(trained):
    assert trained[1].auc > LEAST_AUC


def test_scores_of_a_hundred_users_are_bit_identical_in_every_format(client, candidates):
    for user_id in candidates.users[::9][:100]:
        request = candidates.of(user_id)
        examples = serialize_request(request.user_row, request.items)
        expected = client.predict_examples(examples, target="example").scores
        assert expected.shape == (len(request.items),)
        for target in ("repeated", "colcast"):
            scores = client.rank(request.user_row, request.items, target=target).scores
            np.testing.assert_array_equal(scores, expected, err_msg=f"user {user_id}, {target}")
        late = client.rank(request.user_row, request.items, target="late").scores
        np.testing.assert_allclose(late, expected, rtol=LATE_TOLERANCE)


def test_examples_are_columnized_with_the_user_found_and_sent_once(client, candidates):
    request = candidates.of(405)
    examples = serialize_request(request.user_row, request.items)
    once = client.encode(examples=examples, target="colcast")
    as_examples = client.encode(examples=examples, target="example")
    assert len(once) < len(as_examples) / 2
    np.testing.assert_array_equal(
        client.predict_examples(examples, target="colcast").scores,
        client.predict_examples(examples, target="example").scores,
    )


def test_the_best_candidate_comes_first(client, candidates):
    request = candidates.of(405)
    ranking = client.rank(request.user_row, request.items)
    best = ranking.top(10)
    assert [entry.score for entry in best] == sorted(ranking.scores, reverse=True)[:10]
    assert best[0].row == int(np.argmax(ranking.scores))
