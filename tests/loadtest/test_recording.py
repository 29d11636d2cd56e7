"""What is made of the calls of a run."""

import math

import numpy as np
import pytest
from colcast.loadtest.measure.recording import Recording
from colcast.loadtest.send.connection import Answer, Request

REQUEST = Request(b"12345", rows=3)


def recording(*sent_and_answered: tuple[float, float], wall: float = 1.0) -> Recording:
    found = Recording(wall_seconds=wall)
    for sent, answered in sent_and_answered:
        found.add(REQUEST, Answer("OK", b"xx", "", 100 + sent, 100 + answered), began=100.0)
    return found


def test_a_latency_runs_from_the_time_the_call_was_due():
    found = Recording()
    found.add(REQUEST, Answer("OK", b"", "", 100.4, 100.5), began=100.0, due=0.1)
    assert found.latencies.tolist() == pytest.approx([0.4])
    assert found.lateness.tolist() == pytest.approx([0.3])


def test_a_client_that_waits_is_never_late():
    found = recording((0.2, 0.5))
    assert found.lateness.tolist() == [0.0]
    assert found.latency_ms(50) == pytest.approx(300)


def test_runs_one_after_the_other_are_put_on_one_time_line():
    found = recording((0.0, 0.5), wall=2.0)
    found.extend(recording((0.25, 0.5), wall=1.0))
    assert [call.sent for call in found.calls] == pytest.approx([0.0, 2.25])
    assert found.wall_seconds == 3.0
    assert found.latencies.tolist() == pytest.approx([0.5, 0.25])


def test_cpu_seconds_of_joined_runs_add_up():
    found = Recording()
    for cpu in (0.5, 0.25):
        run = recording((0.0, 0.1))
        run.server_cpu_seconds = cpu
        found.extend(run)
    assert found.server_cpu_ms == pytest.approx(375)


def test_figures_of_nothing_are_not_a_number_rather_than_zero():
    nothing = Recording()
    figures = [nothing.server_cpu_ms, nothing.bytes_per_request, nothing.latency_ms(99)]
    assert all(math.isnan(figure) for figure in figures)
    assert nothing.errors == 0
    assert np.isnan(recording((0.0, 0.1)).server_cpu_ms)
