"""The simulated state cache against a real server's: the same users, one after the other."""

from pathlib import Path

import numpy as np
import pytest
from colcast.capacity.state_cache import StateCache
from colcast.capacity.users import Zipf
from colcast.client import RankingClient
from colcast.loadtest.metrics import page_of, publishing, state_counts
from colcast.server import ServerProcess

from ..models import stages_model

USERS, REQUESTS = 3000, 4000


def test_hit_rates_are_a_real_servers(tmp_path: Path):
    stages_model.save(tmp_path / "ranker" / "1")
    flags = ["--user_state_bytes=1048576", *publishing(tmp_path)]
    random = np.random.default_rng(1)
    histories = random.integers(0, 10**6, (USERS, 50))
    items = stages_model.inputs(random, 1, 2)
    row = {name: items.pop(name)[0] for name in stages_model.DOMAINS["user"]}
    users = Zipf(USERS, 0.8).draw(REQUESTS, seed=2).tolist()
    with (
        ServerProcess("ranker", tmp_path / "ranker", flags) as server,
        RankingClient(server.target, "ranker", timeout_seconds=60) as client,
    ):
        for user in users:
            client.rank({**row, "history": histories[user]}, items)
        counts = state_counts(page_of(server.rest_target))
    found = counts["user", "states_found_total"] / REQUESTS
    states = int(counts["user", "states"])
    assert states < len(set(users)), "nobody was evicted: the cache is no smaller than the users"
    cache = StateCache(states)
    simulated = sum(cache.find(user) for user in users) / REQUESTS
    assert simulated == pytest.approx(found, abs=0.01)
