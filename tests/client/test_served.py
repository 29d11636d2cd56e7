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
from colcast.client import RankingClient
from colcast.server import ServerProcess

from ..models.saving import serialized
from .conftest import CAN, ITEMS, OTHER, USER

TARGETS = ("auto", "late", "columnar", "stock", "repeated", "example")


@pytest.fixture
def client(server: ServerProcess) -> Iterator[RankingClient]:
    with RankingClient(server.target, "movies", timeout_seconds=60) as connected:
        yield connected


def expected(models: Path) -> Any:
    """TensorFlow's own scores, from tf.Examples."""
    model = tf.saved_model.load(str(models / "1"))
    examples = [serialized({**USER, **item}) for item in ITEMS]
    return model.signatures["serving_default"](tf.constant(examples))["scores"].numpy()


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_scores_as_tensorflow_does(client: RankingClient, models: Path, target: Any):
    ranking = client.rank(USER, ITEMS, target=target, outputs=["scores"])
    np.testing.assert_array_equal(ranking.scores, expected(models))
    assert list(ranking.outputs) == ["scores"]
    assert ranking.model_version == 1


def test_the_server_declares_what_it_can_do(client: RankingClient):
    assert client.schema().can == CAN


def test_another_signature_of_examples_asks_for_its_own_features(
    server: ServerProcess,
):
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
def test_several_users_and_prepared_items(client: RankingClient, target: Any):
    prepared = client.prepare(ITEMS, target=target)
    pairs = [(USER, prepared), (OTHER, ITEMS[1:]), (USER, ITEMS[:1])]
    found = client.rank_many(pairs, target=target, outputs=["scores"])
    for one, (user, items) in zip(found, [(USER, ITEMS), *pairs[1:]], strict=True):
        alone = client.rank(user, items, target=target, outputs=["scores"])
        np.testing.assert_array_equal(one.scores, alone.scores)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(("used_before", "several"), [(False, False), (True, False), (True, True)])
def test_a_child_process_opens_its_own_channels(
    server: ServerProcess, used_before: bool, several: bool
):
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "both\n", done.stderr
