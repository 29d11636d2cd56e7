"""Who gets a call: properties of the pure choice."""

import math
from typing import Any

import pytest
from colcast.client.transport._choice import choose, home
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.hypothesis

SERVERS = [f"10.0.0.{n}:8500" for n in range(12)]
in_flight = st.dictionaries(st.sampled_from(SERVERS), st.integers(0, 50), min_size=1)
keys = st.text(min_size=1, max_size=20)
bounds = st.floats(1, 3)


@given(keys, in_flight, bounds)
def test_no_server_gets_more_than_the_bound(key: str, calls: dict[str, int], bound: float) -> None:
    chosen = choose(key, calls, bound)
    mean = (sum(calls.values()) + 1) / len(calls)
    assert calls[chosen] + 1 <= math.ceil(bound * mean)


@given(keys, in_flight, bounds, st.randoms())
def test_the_same_everywhere(key: str, calls: dict[str, int], bound: float, random: Any) -> None:
    shuffled = list(calls.items())
    random.shuffle(shuffled)
    assert choose(key, dict(shuffled), bound) == choose(key, calls, bound)


@given(keys, in_flight)
def test_without_a_bound_a_key_is_at_home(key: str, calls: dict[str, int]) -> None:
    assert choose(key, calls, math.inf) == home(key, calls)


@given(keys, st.sets(st.sampled_from(SERVERS), min_size=2))
def test_a_server_that_goes_moves_its_users_alone(key: str, servers: set[str]) -> None:
    for gone in servers:
        left = home(key, servers - {gone})
        assert left == home(key, servers) or gone == home(key, servers)


@given(in_flight, st.integers(0, 1000))
def test_a_call_of_nobody_goes_where_the_fewest_are(calls: dict[str, int], turn: int) -> None:
    assert calls[choose("", calls, 1.5, turn)] == min(calls.values())


def test_idle_servers_take_turns() -> None:
    calls = dict.fromkeys(SERVERS, 0)
    assert {choose("", calls, 1.5, turn) for turn in range(len(SERVERS))} == set(SERVERS)


def test_users_are_spread_evenly() -> None:
    homes = [home(f"{user:016x}", SERVERS[:4]) for user in range(10_000)]
    counts = [homes.count(server) for server in SERVERS[:4]]
    assert sum(counts) == 10_000
    assert 2300 < min(counts) <= max(counts) < 2700
