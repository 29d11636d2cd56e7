"""Real users' candidates score the same, to the last bit, however their request is written."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.server import ServerProcess
from colcast.zoo.examples import serialize_request
from colcast.zoo.movielens import train
from colcast.zoo.movielens.features import Candidates

USERS = range(1, 944, 27)  # 35 of the 943, with 900 to 1,600 candidates each


@pytest.fixture(scope="module")
def candidates() -> Candidates:
    return Candidates(train.ensure(train.WORK_DIR)[0])


@pytest.fixture(scope="module")
def columnar(candidates: Candidates, tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp("movielens")
    export_saved_model(
        train.WORK_DIR / "model" / "1", base_path / "1", user_features=["user_*"], late=True
    )
    return base_path


@pytest.fixture(scope="module")
def client(columnar: Path) -> Iterator[RankingClient]:
    with (
        ServerProcess("movielens", columnar) as server,
        RankingClient(server.target, "movielens", timeout_seconds=120) as client,
    ):
        yield client


@pytest.mark.parametrize("user", USERS)
def test_every_candidate_of_a_user_has_one_score(
    client: RankingClient, candidates: Candidates, user: int
):
    request = candidates.of(user)
    examples = serialize_request(request.user_row, request.items)
    expected = client.predict_examples(examples, target="example").scores
    assert len(expected) == len(request.movies)
    for target in ("repeated", "columnar"):
        scores = client.rank(request.user_row, request.items, target=target).scores
        np.testing.assert_array_equal(scores, expected, err_msg=target)
    late = client.rank(request.user_row, request.items, target="late").scores
    np.testing.assert_allclose(late, expected, atol=1e-6)
    np.testing.assert_allclose(late, expected, rtol=1e-5)


def test_the_user_once_is_under_half_the_bytes(client: RankingClient, candidates: Candidates):
    request = candidates.of(6)
    items = request.items[:1000]
    examples = serialize_request(request.user_row, items)
    once = client.encode(request.user_row, items, target="columnar")
    assert len(once) < len(client.encode(examples=examples, target="example")) / 2


def test_features_left_out_take_the_models_defaults(client: RankingClient, candidates: Candidates):
    request = candidates.of(6)
    explicit = [{**item, "movie_mean_rating": 3.5, "movie_year": 0} for item in request.items[:9]]
    left_out = [
        {name: v for name, v in item.items() if name not in ("movie_mean_rating", "movie_year")}
        for item in explicit
    ]
    scores = [client.rank(request.user_row, items).scores for items in (explicit, left_out)]
    np.testing.assert_array_equal(*scores)


@pytest.mark.usefixtures("candidates")
def test_an_interrupted_demo_stops_its_server():
    demo = subprocess.Popen(
        [sys.executable, "-u", "-m", "colcast.bench.demo"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert demo.stdout
    server = 0
    for line in demo.stdout:
        if ", process " in line:
            server = int(line.rpartition(" ")[2])
        if "Comparing formats" in line:
            demo.send_signal(signal.SIGTERM)
            break
    rest, _ = demo.communicate(timeout=60)
    assert demo.returncode == 130, rest
    assert "interrupted" in rest
    assert not psutil.pid_exists(server)
