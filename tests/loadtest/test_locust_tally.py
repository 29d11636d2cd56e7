"""Counts of Locust's users by format."""

import json
import math

import numpy as np
import pytest
from colcast.loadtest.locust.tally import Calls, Tally


def test_percentiles_are_exact_to_half_a_percent():
    calls = Calls()
    latencies = np.random.default_rng(0).gamma(2, 3.0, 5000)
    for latency in latencies:
        calls.add(float(latency), 100, ok=True)
    for percentile in (1, 50, 95, 99):
        wanted = float(np.percentile(latencies, percentile, method="inverted_cdf"))
        assert calls.percentile_ms(percentile) == pytest.approx(wanted, rel=0.006)


def test_failed_calls_have_bytes_and_no_latency():
    calls = Calls()
    calls.add(0.1, 100, ok=False)
    calls.add(8.0, 300, ok=True)
    assert (calls.answered, calls.failed, calls.bytes_per_request) == (1, 1, 200)
    assert calls.percentile_ms(1) == pytest.approx(8, rel=0.006)


def test_nothing_has_no_figures():
    assert math.isnan(Calls().percentile_ms(50))
    assert math.isnan(Calls().bytes_per_request)


def test_merged_counts_are_added_once():
    worker, master = Tally(), Tally()
    for latency in (1.0, 2.0, 4.0):
        worker.of("late").add(latency, 10, ok=True)
        master.merge(worker.take())
        master.merge(worker.take())
    assert master.answered == 3
    assert master.of("late").request_bytes == 30
    assert master.of("late").percentile_ms(50) == pytest.approx(2, rel=0.006)


def test_it_travels_in_plain_values():
    tally = Tally()
    tally.of("example").add(3.0, 10, ok=True)
    assert json.loads(json.dumps(tally.take()))["example"]["answered"] == 1
