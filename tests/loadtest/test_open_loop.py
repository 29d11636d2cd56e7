"""Sending on a schedule: nothing waits for an answer, and overload shows."""

import threading
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.loadtest.measure.open_loop import OpenLoop, Schedule, kept_up, poisson
from colcast.loadtest.measure.recording import Recording
from colcast.loadtest.send.connection import Answer, Request
from colcast.server import ServerNotBuiltError

REQUESTS = [Request(bytes([n]), rows=n) for n in range(5)]


def at(*due: float) -> Schedule:
    return Schedule(np.array(due), np.arange(len(due)) % len(REQUESTS))


def test_calls_do_not_wait_for_each_other(serve: Any):
    together = threading.Barrier(5)

    def meet(request: bytes, context: grpc.ServicerContext) -> bytes:
        together.wait(timeout=120)  # passes only if all five are here at once
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


def test_an_overload_piles_up_where_clients_that_wait_hide_it(serve: Any):
    """A server that answers nobody until all calls have come: every call is sent all the same.

    Latencies count from when a call was due, so the first call's has all the waiting in it.
    """
    requests, schedule = [Request(b"x", rows=1)], poisson(40, 0.5, 1, seed=5)
    everybody = threading.Barrier(len(schedule.due))

    def answer_together(request: bytes, context: grpc.ServicerContext) -> bytes:
        everybody.wait(timeout=120)
        return b""

    recording = OpenLoop(serve(answer_together, workers=40)).run(requests, schedule)
    assert recording.codes == {"OK": len(schedule.due)}
    waited = sorted((call.due, call.answered - call.due) for call in recording.calls)
    assert all(latency >= schedule.seconds - due for due, latency in waited)


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


def late(*seconds: float) -> Recording:
    found = Recording()
    for each in seconds:
        found.add(REQUESTS[0], Answer("OK", b"", "", 1 + each, 2 + each), began=0.0, due=1.0)
    return found


@pytest.mark.parametrize(
    ("sends", "late_sends", "percentile", "expected"),
    [
        (100, 1, 99, True),  # one hiccup of the machine
        (100, 9, 99, True),
        (100, 10, 99, False),
        (10_000, 50, 99, True),
        (10_000, 51, 99, False),
        (10_000, 250, 95, True),
        (10_000, 251, 95, False),
    ],
)
def test_a_generator_is_late_when_enough_of_its_sends_are(
    sends: int, late_sends: int, percentile: float, expected: bool
):
    seconds = [0.008] * late_sends + [0.001] * (sends - late_sends)
    assert kept_up(late(*seconds), percentile) is expected


def test_every_one_of_a_thousand_requests_gets_its_answer(serve: Any):
    """The server of this test is Python as well and shares the machine."""
    target, schedule = serve(lambda request, _: b"", workers=2), poisson(1000, 1.0, 5, seed=1)
    recording = OpenLoop(target, timeout_seconds=60).run(REQUESTS, schedule)
    assert recording.codes == {"OK": len(schedule.due)}


def test_a_server_that_is_not_there_shows_in_the_calls():
    recording = OpenLoop("127.0.0.1:1").run(REQUESTS, at(0.0, 0.0))
    assert recording.codes == {"UNAVAILABLE": 2}
    assert "cannot connect to 127.0.0.1:1: Connection refused" in recording.first_error


def test_a_sender_that_fails_says_why():
    with pytest.raises(RuntimeError, match=r"cannot find no\.such\.invalid:1"):
        OpenLoop("no.such.invalid:1").run(REQUESTS, at(0.0))


def test_a_missing_sender_is_named_with_the_package_that_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv("COLCAST_MODEL_SERVER", raising=False)
    monkeypatch.setattr("colcast.server._executable._folders", lambda: [tmp_path])
    with pytest.raises(ServerNotBuiltError, match=r"colcast_sender not found.*colcast-server"):
        OpenLoop("127.0.0.1:1").run(REQUESTS, at(0.0))
