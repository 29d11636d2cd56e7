"""A real model on the real server: every form of a request gives bit-identical scores."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient, ServerError
from colcast.client.transport._transport import PREDICT
from colcast.server import ServerProcess

from ..models import build
from .conftest import CAN, ITEMS, USER
from .test_inputs import COLUMNS

TARGETS = ("auto", "late", "columnar", "stock", "repeated", "example")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("movies")
    build("movies", path / "1")
    return path


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(model_name="movies", model_base_path=models) as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> Iterator[RankingClient]:
    with RankingClient(server.target, "movies", timeout_seconds=60) as connected:
        yield connected


def expected(models: Path) -> Any:
    """TensorFlow's own scores, from tf.Examples."""
    model = tf.saved_model.load(str(models / "1"))
    examples = []
    for item in ITEMS:
        example = tf.train.Example()
        for name, value in {**USER, **item}.items():
            values = value if isinstance(value, list) else [value]
            feature = example.features.feature[name]
            if isinstance(values and values[0], float):
                feature.float_list.value.extend(values)
            elif isinstance(values and values[0], int):
                feature.int64_list.value.extend(values)
            elif values:
                feature.bytes_list.value.extend([text.encode() for text in values])
        examples.append(example.SerializeToString())
    return model.signatures["serving_default"](tf.constant(examples))["scores"].numpy()


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_scores_as_tensorflow_does(
    client: RankingClient, models: Path, target: Any
) -> None:
    ranking = client.rank(USER, ITEMS, target=target, outputs=["scores"])
    np.testing.assert_array_equal(ranking.scores, expected(models))
    assert list(ranking.outputs) == ["scores"]
    assert ranking.model_version == 1


def test_the_server_declares_what_it_can_do(client: RankingClient) -> None:
    assert client.schema().can == CAN


def test_another_signature_of_examples_asks_for_its_own_features(
    server: ServerProcess,
) -> None:
    items = [{"year": 1990, "vector": [1.0, 2.0, 3.0]}, {"vector": np.ones(3), "year": None}]
    found = []
    for target in ("example", "auto"):
        with RankingClient(
            server.target, "movies", timeout_seconds=60, signature="brief"
        ) as asking:
            found.append(asking.rank({}, items, target=target).outputs["brief"])
    filled = [items[0], {**items[1], "year": 1990.0}]
    with RankingClient(server.target, "movies", timeout_seconds=60, signature="slim") as asking:
        found.append(asking.rank({}, filled).outputs["brief"])
    np.testing.assert_array_equal(found, [np.float32([1990 / 6, 1990 / 3])] * 3)


@pytest.mark.parametrize("target", TARGETS)
def test_several_users_and_prepared_items(client: RankingClient, target: Any) -> None:
    users = [USER, {"age": 20, "city": "Oslo", "history": []}]
    prepared = client.prepare(ITEMS, target=target)
    pairs = [(users[0], prepared), (users[1], ITEMS[1:]), (users[0], ITEMS[:1])]
    found = client.rank_many(pairs, target=target, outputs=["scores"])
    items = [ITEMS, ITEMS[1:], ITEMS[:1]]
    for one, user, rows in zip(found, (users[0], users[1], users[0]), items, strict=True):
        alone = client.rank(user, rows, target=target, outputs=["scores"])
        np.testing.assert_array_equal(one.scores, alone.scores)


@pytest.mark.parametrize("target", ["auto", "late", "columnar"])
def test_several_users_take_one_request(
    client: RankingClient, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    monkeypatch.setattr(client._transport, "call", _recorded(client._transport.call, sent))
    users = [{**USER, "age": age, "history": [age, 1]} for age in range(5)]
    found = client.rank_many([(user, ITEMS) for user in users], target=target, outputs=["scores"])
    assert sent.count(PREDICT) == 1
    for one, user in zip(found, users, strict=True):
        alone = client.rank(user, ITEMS, target=target, outputs=["scores"])
        np.testing.assert_array_equal(one.scores, alone.scores)


def _recorded(call: Any, sent: list[str]) -> Any:
    """Wraps the transport's call and records each method."""

    def noted(what: Any, *args: Any) -> Any:
        sent.append(what.method)
        return call(what, *args)

    return noted


def test_a_user_sent_ahead_changes_no_score(client: RankingClient) -> None:
    before = client.rank(USER, ITEMS, outputs=["scores"]).scores
    client.prefetch(USER)
    np.testing.assert_array_equal(client.rank(USER, ITEMS, outputs=["scores"]).scores, before)


@pytest.mark.parametrize("encoding", ["true", "false"])
def test_both_encodings_of_the_answer(models: Path, client: RankingClient, encoding: str) -> None:
    flag = f"--enable_serialization_as_tensor_content={encoding}"
    with (
        ServerProcess("movies", models, flags=[flag]) as other,
        RankingClient(other.target, "movies", timeout_seconds=60) as asking,
    ):
        outputs = asking.rank(USER, ITEMS).outputs
    for name, values in client.rank(USER, ITEMS).outputs.items():
        np.testing.assert_array_equal(outputs[name], values)


def test_a_thousand_candidates_and_one(client: RankingClient) -> None:
    many = {name: (values * 334)[:1000] for name, values in COLUMNS.items()}
    scores = client.rank(USER, many, outputs=["scores"]).scores
    assert scores.shape == (1000,)
    one = client.rank(USER, ITEMS[:1], outputs=["scores"]).scores
    assert one.tolist() == scores[:1].tolist()


@pytest.mark.parametrize(
    ("settings", "code", "culprit"),
    [
        ({"model": "books"}, "NOT_FOUND", "books"),
        ({"version": 9}, "NOT_FOUND", "9"),
    ],
)
def test_requests_that_the_server_refuses(
    server: ServerProcess, settings: dict[str, Any], code: str, culprit: str
) -> None:
    options = {"model": "movies", "timeout_seconds": 60, **settings}
    with RankingClient(server.target, **options) as asking, pytest.raises(ServerError) as refused:
        asking.rank(USER, ITEMS)
    assert refused.value.code == code
    assert culprit in refused.value.details


def test_an_output_that_does_not_exist(client: RankingClient) -> None:
    with pytest.raises(ServerError, match=r"INVALID_ARGUMENT .*sores"):
        client.rank(USER, ITEMS, outputs=["sores"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_a_child_process_opens_its_own_channels(
    server: ServerProcess, used_before: bool, several: bool
) -> None:
    local = server.target.replace("127.0.0.1", "localhost")
    address = [server.target, local] if several else server.target
    code = f"""
import os, sys
from colcast.client import RankingClient
client = RankingClient({address!r}, "movies", timeout_seconds=120)
if {used_before}:
    client.schema()
child = os.fork()
if child == 0:
    fresh = client.encode({USER!r}, {ITEMS!r})
    client.send(fresh)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
client.rank({USER!r}, {ITEMS!r})
print("both")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "both\n", done.stderr
