"""Sending on a schedule: nothing waits for an answer, and overload shows."""

import threading
import time
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Answer, Request
from colcast.loadtest.open_loop import OpenLoop, kept_up
from colcast.loadtest.recording import Recording
from colcast.loadtest.schedule import Schedule, poisson

REQUESTS = [Request(bytes([n]), rows=n) for n in range(5)]


def at(*due: float) -> Schedule:
    return Schedule(np.array(due), np.arange(len(due)) % len(REQUESTS))


def slow_server(serve: Any, seconds: float) -> str:
    """Answers one request at a time, each after so many seconds."""

    def work(request: bytes, context: grpc.ServicerContext) -> bytes:
        time.sleep(seconds)
        return b""

    return str(serve(work, workers=1))


def test_calls_do_not_wait_for_each_other(serve: Any):
    together = threading.Barrier(5)

    def meet(request: bytes, context: grpc.ServicerContext) -> bytes:
        together.wait(timeout=20)  # passes only if all five are here at once
        return b""

    recording = OpenLoop(serve(meet, workers=8), connections=2).run(REQUESTS, at(*[0.0] * 5))
    assert recording.codes == {"OK": 5}


def test_the_schedule_decides_what_is_sent_and_when(serve: Any):
    received = []
    target = serve(lambda request, _: received.append(request) or b"", workers=1)
    recording = OpenLoop(target, connections=1).run(REQUESTS, at(0.0, 0.05, 0.15))
    assert received == [b"\x00", b"\x01", b"\x02"]
    assert [call.due for call in recording.calls] == [0.0, 0.05, 0.15]
    assert recording.lateness.min() >= 0
    assert recording.wall_seconds >= 0.15


def test_open_loop_latency_grows_under_overload_where_a_closed_loop_hides_it(serve: Any):
    """20 requests a second, each of 100 ms, one at a time: ten a second must pile up.

    After t seconds of sending 20t are due and 10t are answered, so a call due at t waits t.
    """
    requests = [Request(b"x", rows=1)]
    recording = OpenLoop(slow_server(serve, 0.1)).run(requests, poisson(20, 3.0, 1, seed=5))
    due = np.array([call.due for call in recording.calls])
    growth = np.polyfit(due, recording.latencies, 1)[0]
    early, late = recording.latencies[due < 1], recording.latencies[due > 2]
    assert 0.6 < growth < 1.6
    assert np.median(late) > 2.5 * np.median(early)

    with ClosedLoop(slow_server(serve, 0.1), clients=2) as clients:
        waiting = clients.run(requests, calls=20)
    first, last = waiting.latencies[2:10], waiting.latencies[-8:]
    assert np.median(last) == pytest.approx(np.median(first), rel=0.5)


def test_timeouts_and_errors_are_calls_too(serve: Any):
    def refuse(request: bytes, context: grpc.ServicerContext) -> bytes:
        if request == b"\x01":
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full")
        never.wait(20)
        return b""

    never = threading.Event()
    try:
        loop = OpenLoop(serve(refuse), timeout_seconds=0.2)
        recording = loop.run(REQUESTS, at(0.0, 0.0))
    finally:
        never.set()
    assert recording.codes == {"DEADLINE_EXCEEDED": 1, "RESOURCE_EXHAUSTED": 1}
    assert recording.first_error == "RESOURCE_EXHAUSTED: the queue is full"
    assert len(recording.latencies) == 0


def test_samples_belong_to_their_requests(serve: Any):
    loop = OpenLoop(serve(lambda request, _: request * 3), keep_every=2)
    recording = loop.run(REQUESTS, at(*[0.0] * 10))
    assert sorted(sample.request for sample in recording.samples) == [0, 1, 2, 3, 4]
    assert all(s.response == REQUESTS[s.request].payload * 3 for s in recording.samples)


def test_a_generator_that_is_late_says_so():
    calls = Recording()
    for late in (0.0, 0.0, 0.2):
        calls.add(REQUESTS[0], _answer(sent=1 + late), began=0.0, due=1.0)
    assert not kept_up(calls)


def _answer(sent: float) -> Any:
    return Answer("OK", b"", "", sent, sent + 0.001)


def test_a_thousand_requests_a_second_get_their_answers(serve: Any):
    """The server of this test is Python as well and shares the machine."""
    target = serve(lambda request, _: b"", workers=2)
    recording = OpenLoop(target).run(REQUESTS, poisson(1000, 1.0, 5, seed=1))
    assert recording.codes == {"OK": len(recording.calls)}
    assert len(recording.calls) == pytest.approx(1000, rel=0.15)
