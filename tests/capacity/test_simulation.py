"""The simulation against what is known exactly: M/M/c queues, hit rates, who moves."""

from itertools import islice
from math import factorial

import numpy as np
import pytest
from colcast.capacity.routing import Routing, routings
from colcast.capacity.simulation import Replicas, Work, poisson_arrivals, simulate
from colcast.capacity.state_cache import StateCache
from colcast.capacity.users import Zipf
from colcast.zoo import catalog
from hypothesis import given
from hypothesis import strategies as st

TURNS, BY_USER, BOUNDED = routings(1.5)


def mean_wait(rate: float, service_seconds: float, workers: int) -> float:
    """Of an M/M/c queue, by Erlang's C formula."""
    load = rate * service_seconds
    busy = load / workers
    waits = load**workers / factorial(workers) / (1 - busy)
    waits /= waits + sum(load**k / factorial(k) for k in range(workers))
    return waits * service_seconds / (workers - load)


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("busy", [0.3, 0.7, 0.85])
def test_waits_are_those_of_an_m_m_c_queue(workers: int, busy: float):
    count, service = 300_000, 0.01
    rate = busy * workers / service
    seconds = np.random.default_rng(5).exponential(service, count)
    work = Work(np.zeros(count), seconds)
    arrivals = poisson_arrivals(rate, count, 6)
    users = np.zeros(count, np.int64)
    outcome = simulate(arrivals, users, TURNS, Replicas(1, workers), work, work)
    assert outcome.seconds.mean() == pytest.approx(mean_wait(rate, service, workers), rel=0.08)


def test_p99_of_one_worker_is_the_formulas():
    """A sojourn in M/M/1 is exponential."""
    count, rate, service = 300_000, 60.0, 0.01
    seconds = np.random.default_rng(5).exponential(service, count)
    work = Work(seconds, seconds)
    arrivals = poisson_arrivals(rate, count, 6)
    users = np.zeros(count, np.int64)
    outcome = simulate(arrivals, users, TURNS, Replicas(1, 1), work, work)
    assert outcome.p99_ms == pytest.approx(1000 * np.log(100) / (1 / service - rate), rel=0.05)


def hit_rate(users: np.ndarray, routing: Routing, states: int, replicas: int = 4) -> float:
    """Of the second half, with hardly any load."""
    work = Work(np.full(len(users), 1e-4), np.full(len(users), 1e-4))
    arrivals = poisson_arrivals(100.0, len(users), 1)
    outcome = simulate(arrivals, users, routing, Replicas(replicas, 1, states), work, work)
    return outcome.after(len(users) // 2).hit_rate


def test_hit_rates_where_everything_fits_are_exact():
    """By user, whoever came before is found; in turn, whoever came to the same replica."""
    users = Zipf(500, 1.0).draw(6000, seed=2)
    came, exact = set(), {TURNS: 0, BY_USER: 0}
    for number, user in enumerate(users.tolist()):
        if number >= 3000:
            exact[BY_USER] += any((user, replica) in came for replica in range(4))
            exact[TURNS] += (user, number % 4) in came
        came.add((user, number % 4))
    for routing, hits in exact.items():
        assert hit_rate(users, routing, states=500) == hits / 3000


def test_a_cache_of_one_state_finds_who_comes_twice_in_a_row():
    cache = StateCache(1)
    assert [cache.find(user) for user in (1, 1, 1, 2, 2, 1)][:3] == [False, True, True]
    assert len(cache) == 1


def test_one_time_users_do_not_evict_those_who_come_again():
    cache = StateCache(100)
    for _ in range(3):
        for user in range(50):
            cache.find(user)
    for stranger in range(1000, 3000):
        cache.find(stranger)
    assert all(cache.find(user) for user in range(50))
    assert len(cache) <= 100


@given(st.lists(st.integers(0, 30), max_size=300), st.integers(0, 20))
def test_a_cache_keeps_no_more_than_it_may_and_finds_only_who_came(users: list[int], states: int):
    cache, came = StateCache(states), set()
    for user in users:
        assert not cache.find(user) or user in came
        came.add(user)
        assert len(cache) <= states


def test_by_user_finds_more_than_in_turn_and_the_bound_costs_hits():
    users = Zipf(4000, 1.0).draw(20_000, seed=1)
    work = Work(np.full(20_000, 2e-3), np.full(20_000, 2e-3))
    found = [
        simulate(None, users, one, Replicas(4, 1, 1000), work, work, clients=16).after(10_000)
        for one in routings(1.5)
    ]
    turns, by_user, bounded = (one.hit_rate for one in found)
    assert turns < bounded < by_user
    hottest = [np.bincount(one.replica).max() / np.bincount(one.replica).mean() for one in found]
    assert hottest[0] == pytest.approx(1, abs=0.001)
    assert hottest[2] <= hottest[1]


def test_hit_rates_are_those_measured_of_four_replicas():
    """By tests/deploy/bench_affinity.py, with Envoy and by the client: docs/scale.md has them."""
    measured = {TURNS: (70.2, 70.8), BY_USER: (84.6, 84.5), BOUNDED: (79.3, 78.2)}
    draws = islice(catalog.Zipf(4000, 1.0).draws(1, seed=3), 8000)
    users = np.array([int(user) for (user,) in draws])
    hit, miss = (
        Work(np.full(8000, seconds), np.full(8000, seconds)) for seconds in (1.5e-4, 1.4e-3)
    )
    for routing, shares in measured.items():
        outcome = simulate(None, users, routing, Replicas(4, 1, 1000), hit, miss, clients=16)
        found = 100 * outcome.after(4000).hit_rate
        assert min(abs(found - share) for share in shares) < 1, (routing, found)


def test_a_replica_more_moves_only_the_users_that_it_gets():
    users = np.arange(10_000)
    before, after = (BY_USER.among(replicas, users) for replicas in (4, 5))
    moved = [user for user in range(10_000) if before(user, []) != after(user, [])]
    assert all(after(user, []) == 4 for user in moved)
    assert len(moved) == pytest.approx(2000, rel=0.1)


def test_a_replica_at_its_bound_gets_no_more():
    choose = BOUNDED.among(4, np.arange(1000))
    for user in range(1000):
        chosen = choose(user, [9, 0, 0, 0])
        assert chosen != 0
