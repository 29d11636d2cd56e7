"""The client's calls that use kept states: a user sent ahead, several users in one request."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from colcast.client import RankingClient
from colcast.server import ServerProcess

from ..models import stages_model
from .metrics_page import Metrics

USER = ("age", "city", "history")


@pytest.fixture(scope="module", name="server")
def _server(tmp_path_factory: pytest.TempPathFactory, monitoring: list[str]) -> Iterator[Any]:
    base_path = tmp_path_factory.mktemp("parts")
    stages_model.save(base_path / "1")
    with ServerProcess("ranker", base_path, monitoring) as started:
        yield started


@pytest.fixture(name="client")
def _client(server: ServerProcess) -> Iterator[RankingClient]:
    with RankingClient(server.target, "ranker", timeout_seconds=60) as connected:
        yield connected


def computed(server: ServerProcess, store: str) -> float:
    """How many rows of a store were computed so far."""
    labels = {"model_name": "ranker", "version": "1", "signature_name": "columnar_late"}
    return Metrics(server).value(":colcast:states_computed", store=store, **labels)


def pair(seed: int, candidates: int = 5) -> tuple[dict[str, Any], dict[str, Any]]:
    """A user that no other seed draws, and candidates."""
    columns = stages_model.inputs(np.random.default_rng(seed), 1, candidates, 1 + seed % 3)
    columns["age"] = np.array([1000 + seed])
    user = {name: columns.pop(name)[0] for name in USER}
    return user, columns


def test_a_user_sent_ahead_is_not_computed_again(
    server: ServerProcess, client: RankingClient
) -> None:
    user, items = pair(1)
    before = computed(server, "user")
    assert client.prefetch(user)
    assert computed(server, "user") == before + 1
    client.rank(user, items)
    assert computed(server, "user") == before + 1


def test_several_users_are_computed_once_each(server: ServerProcess, client: RankingClient) -> None:
    pairs = [pair(seed) for seed in range(10, 15)]
    before = computed(server, "user")
    found = client.rank_many(pairs)
    assert computed(server, "user") == before + 5
    for one, (user, items) in zip(found, pairs, strict=True):
        alone = client.rank(user, items)
        for name, values in alone.outputs.items():
            if values.dtype.kind == "f":
                np.testing.assert_allclose(one.outputs[name], values, rtol=1e-4)
            else:
                np.testing.assert_array_equal(one.outputs[name], values)
    assert computed(server, "user") == before + 5
