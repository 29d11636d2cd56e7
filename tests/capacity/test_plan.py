"""Plans: more load needs more, more replicas never need more, and what was measured comes out."""

import pytest
from colcast.capacity.costs import costs_of
from colcast.capacity.measured import Measured, UnusableError, read
from colcast.capacity.plan import Demand, Model, check_target, fewest, highest_rate, plan
from colcast.capacity.routing import routings
from colcast.capacity.service import Service
from colcast.capacity.users import Zipf, parse_users
from hypothesis import given, settings
from hypothesis import strategies as st

from .results import load_test, observed, written

TURNS, BY_USER, BOUNDED = routings(1.5)
QUANTILES = ((1.0, 1.0), (50.0, 2.0), (90.0, 3.0), (99.0, 5.0), (99.9, 8.0))
MISS = Service(QUANTILES, 1000, cpu_ms=2.0)
HIT = Service(tuple((p, ms / 4) for p, ms in QUANTILES), 1000, cpu_ms=0.5)
SMALL = Model(MISS, MISS, workers=2, requests=4000)


@settings(max_examples=15, deadline=None)
@given(st.floats(100, 20_000), st.floats(6, 50), st.floats(1.05, 3))
def test_more_load_or_a_shorter_time_never_needs_fewer(rate: float, p99_ms: float, times: float):
    needed = fewest(SMALL, Demand(rate, p99_ms), TURNS)
    assert fewest(SMALL, Demand(times * rate, p99_ms), TURNS) >= needed
    assert fewest(SMALL, Demand(rate, times * p99_ms), TURNS) <= needed


@settings(max_examples=15, deadline=None)
@given(st.floats(1000, 20_000))
def test_more_replicas_never_miss_what_fewer_keep(rate: float):
    needed = fewest(SMALL, Demand(rate, 12), TURNS)
    for more in (needed, needed + 1, 2 * needed):
        assert SMALL.run(rate, more, TURNS).p99_ms <= 12


def test_a_plan_keeps_the_target_with_its_spare_replicas_lost():
    one = plan(SMALL, Demand(5000, 10, spare=2), TURNS)
    assert one.replicas - 2 == fewest(SMALL, Demand(5000, 10), TURNS)
    assert one.p99_ms <= one.lost_p99_ms <= 10
    assert one.replica_rate == 5000 / (one.replicas - 2)
    assert SMALL.run(5000, one.replicas - 3, TURNS).p99_ms > 10


def test_affinity_saves_replicas_where_hits_are_cheap():
    model = Model(HIT, MISS, 1, Zipf(20_000, 1.0), states=2000, requests=20_000)
    turns, by_user, bounded = (plan(model, Demand(8000, 20), one) for one in routings(1.5))
    assert by_user.hit_rate > turns.hit_rate
    assert by_user.cpu_ms < turns.cpu_ms
    assert bounded.replicas <= turns.replicas


def test_one_replica_bears_less_than_its_workers_could():
    rate = highest_rate(SMALL, 12)
    assert 0.4 * 1000 < rate < 1000  # two workers, 2 ms
    assert SMALL.run(rate, 1, TURNS).p99_ms <= 12


def measured(tmp_path, *rates: float, **more) -> list[Measured]:
    """Load tests of a server with two workers that are occupied for 4 ms per request."""
    results = {f"at{rate:g}": load_test(rate, **more) for rate in rates}
    return [read(path) for path in map(type(tmp_path), written(tmp_path, **results))]


def test_the_fit_finds_what_a_request_occupies(tmp_path):
    """Whatever its CPU time is: here it waits for half of its time, or computes on two cores."""
    for cpu_ms in (0.2, 2.0, 4.0, 8.0):
        known = measured(tmp_path, 20, 250, 350, 420, server_cpu_ms=cpu_ms)
        costs = costs_of(known, 2, by_user=False)
        assert costs.hit.occupied_ms == pytest.approx(4.0, rel=0.15)
        assert len(costs.comparisons) >= 2
        for one in costs.comparisons:
            assert one.simulated_ms == pytest.approx(one.measured_ms, rel=0.25)


def test_clients_that_wait_tell_the_time_without_waiting(tmp_path):
    """Better than a low rate: at 125 per second some requests wait."""
    result = load_test(20)
    result["load"] = {"clients": 2}
    alone = read(type(tmp_path)(written(tmp_path, alone=result)[0]))
    costs = costs_of([alone, *measured(tmp_path, 125, 400)], 2, by_user=False)
    assert costs.hit.calls == alone.stretches[0].calls
    assert costs.hit.latency_ms(99) == pytest.approx(alone.stretches[0].quantiles_ms[7][1])
    assert [one.rate for one in costs.comparisons] == [125, 400]


def test_without_load_it_says_that_nothing_was_fitted(tmp_path):
    costs = costs_of(measured(tmp_path, 20), 2, by_user=False)
    assert costs.hit.factor == 1
    assert "not measured under load" in costs.notes[0]


def test_hits_and_misses_come_from_results_of_each(tmp_path):
    misses = measured(tmp_path, 20, users_found=0.02)
    hits = measured(tmp_path, 21, users_found=1.0, mean_ms=1.0)
    costs = costs_of([*hits, *misses], 2, by_user=True)
    assert (costs.hit.cpu_ms, costs.miss.cpu_ms) == (1.0, 4.0)
    alike = costs_of(misses, 2, by_user=True)
    assert alike.hit == alike.miss
    assert "a hit is taken to cost what a miss costs" in " ".join(alike.notes)
    with pytest.raises(UnusableError, match="cost of a miss is not known"):
        costs_of(hits, 2, by_user=True)
    with pytest.raises(UnusableError, match="40 % of its users were known"):
        costs_of(measured(tmp_path, 22, users_found=0.4), 2, by_user=True)
    with pytest.raises(UnusableError, match=r"was not counted.*--metrics.*--found"):
        costs_of(measured(tmp_path, 23), 2, by_user=True)


def test_one_user_may_be_too_much_for_a_replica():
    model = Model(MISS, MISS, 2, Zipf(10, 1.0), states=0, requests=4000)
    with pytest.raises(UnusableError, match="by user: no number of replicas keeps a p99 of 12 ms"):
        plan(model, Demand(5000, 12), BY_USER)
    assert plan(model, Demand(5000, 12), BOUNDED).p99_ms <= 12


def test_a_target_below_the_latency_without_load_is_refused():
    with pytest.raises(UnusableError, match=r"with hardly any load the p99 was 5 ms"):
        check_target(SMALL, Demand(100, 4))
    check_target(SMALL, Demand(100, 6))


def test_results_that_say_nothing_are_refused(tmp_path):
    def refusal(**changed) -> str:
        with pytest.raises(UnusableError) as error:
            measured(tmp_path, 50, **changed)
        return str(error.value)

    assert "no CPU figure" in refusal(server_cpu_ms=None)
    assert "the load generator was late" in refusal(kept_up=False)
    assert "3 of 4,000 calls failed" in refusal(errors=3)


def test_a_server_that_was_never_idle_is_refused(tmp_path):
    with pytest.raises(UnusableError, match=r"80 % of the workers busy.*--clients 1, too"):
        costs_of(measured(tmp_path, 400), 2, by_user=False)


def test_of_a_search_the_windows_in_which_the_generator_was_late_are_left_out(tmp_path):
    windows = [
        {
            "rate": rate,
            "ms": 5.0,
            "verdict": "holds",
            "observed": observed(rate, kept_up=rate < 300),
        }
        for rate in (50, 200, 400)
    ]
    result = load_test(200)
    result["series"][0]["search"] = {"windows": windows, "measured_again": []}
    result["load"] = {}
    found = read(type(tmp_path)(written(tmp_path, search=result)[0]))
    assert [one.rate for one in found.stretches] == [50, 200]
    assert "400 per second: the load generator was late" in found.left_out[0]


@pytest.mark.parametrize(
    "text", ["zipf:0:1", "zipf:5", "zipf:5:nan", "pareto:5:1", "file:/nowhere"]
)
def test_other_laws_are_refused(text):
    with pytest.raises(ValueError, match=text if "file" not in text else "No such file"):
        parse_users(text)


def test_recorded_users_are_a_line_each(tmp_path):
    log = tmp_path / "users"
    log.write_text("a\nb\na\n" * 400)
    users = parse_users(f"file:{log}")
    assert users.draw(4, 0).tolist() == [0, 1, 0, 0]
    assert str(users).startswith("2 users in the 1,200 requests of")
    log.write_text("a\n\n" * 600)
    with pytest.raises(ValueError, match="line 2: no user"):
        parse_users(f"file:{log}")
