"""`x-colcast-user` is the same for a user in every format, and never shows the user's values."""

import math
import re
from typing import Any

import pandas as pd
import pytest
from colcast.client import (
    InputError,
    ModelSchema,
    RankingClient,
    Target,
)
from colcast.client.columns._inputs import Rows
from colcast.client.request._request import build_prefetch, build_request
from colcast.client.transport._servers import choose, home
from hypothesis import given
from hypothesis import strategies as st

from .conftest import ALL, ITEMS, OTHER, USER, client_of, request_options, without_late

HEADER = "x-colcast-user"


def affinity(schema: ModelSchema, user: Any, items: Any = ITEMS, target: Target = "auto") -> str:
    return build_request(schema, Rows(items, user), request_options("movies", target)).affinity


def test_a_known_user_has_a_known_hash(schema: ModelSchema):
    """Clients of every version and process compute the same hash."""
    assert affinity(schema, USER) == "ca44e6285a83a5a8"


@pytest.mark.parametrize("target", [*ALL, "auto", "example"])
def test_every_way_to_write_a_request_has_the_same_hash(schema: ModelSchema, target: Target):
    mixed = [{**USER, **item} for item in ITEMS]
    found = {
        affinity(schema, USER, ITEMS, target),
        affinity(schema, pd.Series(USER), ITEMS[:1], target),
        affinity(schema, dict(reversed(USER.items())), ITEMS, target),
        affinity(schema, None, mixed, target),
        build_prefetch(schema, USER, request_options("movies")).affinity,
    }
    assert found == {affinity(schema, USER)}


def test_another_user_has_another_hash(schema: ModelSchema):
    users = [USER, OTHER, {**USER, "history": [1, 2]}, {**USER, "city": "Łódz"}]
    found = {affinity(schema, user) for user in users}
    assert len(found) == len(users)
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in found)


def test_without_known_user_features_there_is_no_affinity(schema: ModelSchema):
    assert affinity(without_late(schema), USER) == ""
    options = request_options("movies", affinity="off")
    assert build_request(schema, Rows(ITEMS, USER), options).affinity == ""


def test_the_secret_changes_it(schema: ModelSchema):
    options = request_options("movies", affinity_secret="ours")
    assert build_request(schema, Rows(ITEMS, USER), options).affinity != affinity(schema, USER)


def headers(server: Any, method: str = "Predict") -> list[str | None]:
    return [sent.get(HEADER) for name, _, sent in server.requests if name == method]


def test_what_is_sent(serves: Any, schema: ModelSchema):
    server = serves(schema)
    with client_of(server) as client:
        client.rank(USER, ITEMS)
        client.prefetch(USER)
        client.rank(USER, ITEMS, affinity_key=17)
        client.rank(OTHER, ITEMS, affinity_key="17")
        client.send(client.encode(USER, ITEMS), affinity_key=b"17")
        client.send(client.encode(USER, ITEMS))
        with pytest.raises(InputError, match="affinity_key must be str, bytes or int, got float"):
            client.rank(USER, ITEMS, affinity_key=1.5)  # type: ignore[arg-type]
    user = affinity(schema, USER)
    sent = headers(server)
    assert sent[:2] == [user, user]
    assert len(set(sent[2:5])) == 1
    assert sent[2] not in (user, None, "17")
    assert sent[5] is None
    assert headers(server, "GetModelMetadata") == [None]


def test_a_request_of_several_users_has_the_first_ones(serves: Any, schema: ModelSchema):
    server = serves(schema)
    pairs = [(OTHER, ITEMS), ({**OTHER, "age": 3}, ITEMS)]
    with client_of(server) as client:
        client.rank_many(pairs)
        client.rank_many(pairs, affinity_keys=["a", "b"])
        client.rank(USER, ITEMS, affinity_key="a")
        with pytest.raises(InputError, match="1 affinity_keys for 2 pairs"):
            client.rank_many(pairs, affinity_keys=["a"])
    sent = headers(server)
    assert sent[0] == affinity(schema, OTHER)
    assert sent[1] == sent[2]


def test_users_have_the_same_server_in_every_form(serves: Any):
    """A user's calls reach one server, alone or in a group; every server gets some users."""
    servers = [serves() for _ in range(3)]
    users = [{**OTHER, "age": age} for age in range(24)]
    with RankingClient([s.address for s in servers], "movies", timeout_seconds=120) as client:
        while not all(server.count("Predict") for server in servers):
            client.send(client.encode(USER, ITEMS))
        for server in servers:
            server.requests.clear()
        for user in users:
            client.rank(user, ITEMS)
        met = [set(headers(server)) for server in servers]
        assert sum(map(len, met)) == len(users) == len(set.union(*met))
        assert all(met)
        for server in servers:
            server.requests.clear()
        client.rank_many([(user, ITEMS) for user in users])
    joint = [set(headers(server)) for server in servers]
    assert all(found and found <= before for found, before in zip(joint, met, strict=True))


pytestmark = pytest.mark.hypothesis

SERVERS = [f"10.0.0.{n}:8500" for n in range(12)]
in_flight = st.dictionaries(st.sampled_from(SERVERS), st.integers(0, 50), min_size=1)
keys = st.text(min_size=1, max_size=20)
bounds = st.floats(1, 3)


@given(keys, in_flight, bounds)
def test_no_server_gets_more_than_the_bound(key: str, calls: dict[str, int], bound: float):
    chosen = choose(key, calls, bound)
    mean = (sum(calls.values()) + 1) / len(calls)
    assert calls[chosen] + 1 <= math.ceil(bound * mean)


@given(keys, in_flight, bounds, st.randoms())
def test_the_same_everywhere(key: str, calls: dict[str, int], bound: float, random: Any):
    shuffled = list(calls.items())
    random.shuffle(shuffled)
    assert choose(key, dict(shuffled), bound) == choose(key, calls, bound)


@given(keys, in_flight)
def test_without_a_bound_a_key_is_at_home(key: str, calls: dict[str, int]):
    assert choose(key, calls, math.inf) == home(key, calls)


@given(keys, st.sets(st.sampled_from(SERVERS), min_size=2))
def test_a_server_that_leaves_moves_only_its_own_users(key: str, servers: set[str]):
    for gone in servers:
        left = home(key, servers - {gone})
        assert left == home(key, servers) or gone == home(key, servers)


@given(in_flight, st.integers(0, 1000))
def test_a_call_without_a_user_goes_to_the_least_busy_server(calls: dict[str, int], turn: int):
    assert calls[choose("", calls, 1.5, turn)] == min(calls.values())


def test_idle_servers_take_turns():
    calls = dict.fromkeys(SERVERS, 0)
    assert {choose("", calls, 1.5, turn) for turn in range(len(SERVERS))} == set(SERVERS)


def test_users_are_spread_evenly():
    homes = [home(f"{user:016x}", SERVERS[:4]) for user in range(10_000)]
    counts = [homes.count(server) for server in SERVERS[:4]]
    assert sum(counts) == 10_000
    assert 2300 < min(counts) <= max(counts) < 2700
