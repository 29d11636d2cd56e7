"""The search for the highest rate, on servers whose limit is known."""

import numpy as np
import pytest
from colcast.loadtest.measure.budget import Budget
from colcast.loadtest.measure.recording import Recording
from colcast.loadtest.measure.search import (
    Ended,
    Found,
    Sla,
    Verdict,
    confirm,
    find_max,
)
from colcast.loadtest.send.connection import Answer, Request

REQUEST = Request(b"", rows=1)
P95 = Sla(95, 25.0)


def recording(*milliseconds: float, code: str = "OK", late: float = 0.0) -> Recording:
    found = Recording()
    for number, ms in enumerate(milliseconds):
        sent = number + late
        found.add(REQUEST, Answer(code, b"", "", sent, number + ms / 1000), 0.0, due=number)
    return found


def server(limit: float):
    """Simulates a server that answers in 5 ms up to its limit, and in 500 ms above."""
    return lambda rate, window: recording(*[5.0 if rate <= limit else 500.0] * 20)


@pytest.mark.parametrize("limit", [3.0, 70.0, 800.0, 3210.0])
def test_the_limit_is_found_within_the_precision(limit: float):
    found = find_max(server(limit), P95, start=50, precision=0.05)
    assert 0.94 * limit <= found.rate <= limit
    assert not found.generator_limited


def test_one_bad_window_of_three_does_not_decide():
    def noisy(rate: float, window: int) -> Recording:
        return recording(*[500.0 if window % 5 == 1 else 5.0] * 20)

    assert find_max(noisy, P95, start=100, highest=1000).rate == 800


def test_a_generator_that_is_late_is_named_as_the_limit():
    def run(rate: float, window: int) -> Recording:
        return recording(5.0) if rate <= 400 else recording(*[90.0] * 10, late=0.05)

    found = find_max(run, P95, start=100)
    assert found.rate == pytest.approx(400, rel=0.06)
    assert found.generator_limited
    assert found.windows[-1].verdict in (Verdict.HOLDS, Verdict.GENERATOR_LATE)


def test_a_window_in_which_the_generator_was_late_does_not_decide():
    def run(rate: float, window: int) -> Recording:
        return recording(*[90.0] * 20, late=0.05) if window % 3 == 0 else server(800)(rate, window)

    found = find_max(run, P95, start=100)
    assert found.rate == 800
    assert not found.generator_limited


def test_a_server_that_never_meets_it_has_no_rate():
    found = find_max(server(0.0), P95, start=50)
    assert found.rate == 0
    assert {window.verdict for window in found.windows} == {Verdict.MISSES}


def test_a_failed_call_has_no_answer():
    failing = recording(*[1.0] * 94)
    failing.extend(recording(*[1.0] * 6, code="RESOURCE_EXHAUSTED"))
    assert P95.reached(failing) == np.inf
    assert Sla(90, 25).reached(failing) == pytest.approx(1.0)


def test_a_rate_that_holds_again_is_confirmed():
    found, measured = confirm(Found(400.0, (), False), lambda _: recording(5.0), P95)
    assert (found.rate, found.confirmed, len(found.again)) == (400.0, True, 1)
    assert len(measured.calls) == 1


def test_a_rate_that_misses_again_is_replaced_by_a_lower_one_that_holds():
    found, _ = confirm(
        Found(400.0, (), False), lambda rate: recording(90.0 if rate > 370 else 5.0), P95
    )
    assert found.confirmed
    assert found.rate == pytest.approx(361)
    assert [window.verdict for window in found.again] == [
        *[Verdict.MISSES, Verdict.MISSES, Verdict.HOLDS]
    ]


def test_rates_that_all_miss_again_leave_the_search_unconfirmed():
    found, _ = confirm(Found(400.0, (), False), lambda _: recording(90.0), P95)
    assert not found.confirmed
    assert not found.settled
    assert len(found.again) == 5


def test_an_interrupt_leaves_what_was_found():
    def run(rate: float, window: int) -> Recording:
        if window == 5:
            raise KeyboardInterrupt
        return server(800)(rate, window)

    found = find_max(run, P95, start=50)
    assert (found.rate, found.ended, len(found.windows)) == (800, Ended.INTERRUPT, 5)


def test_a_budget_ends_the_search_after_at_least_one_rate():
    seconds = [0.0]

    def run(rate: float, window: int) -> Recording:
        seconds[0] += 3.0
        return server(800)(rate, window)

    budget = Budget(20.0, now=lambda: seconds[0])
    found = find_max(run, P95, start=50, budget=budget)
    assert (found.rate, found.ended) == (800, Ended.BUDGET)
    assert budget.spent
    assert find_max(run, P95, start=50, budget=budget).rate == 50
    confirmed, _ = confirm(found, lambda _: recording(5.0), P95)
    assert confirmed.confirmed
    assert not confirmed.settled
