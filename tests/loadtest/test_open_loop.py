"""Calls on a schedule do not wait for answers, so they show an overload."""

import threading
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.loadtest.measure.open_loop import OpenLoop, Schedule, kept_up, poisson
from colcast.loadtest.measure.recording import Recording
from colcast.loadtest.send.connection import Answer, Request
from colcast.loadtest.send.sizes import draw, parse_sizes
from colcast.server import ServerNotBuiltError
from scipy import stats

REQUESTS = [Request(bytes([n]), rows=n) for n in range(5)]


def at(*due: float) -> Schedule:
    return Schedule(np.array(due), np.arange(len(due)) % len(REQUESTS))


def test_calls_do_not_wait_for_each_other(serve: Any):
    together = threading.Barrier(5)

    def meet(request: bytes, context: grpc.ServicerContext) -> bytes:
        together.wait(timeout=120)  # returns only when five calls are here
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
    """The generator sends every call, although the server answers none until the last one arrives.

    A latency is measured from the call's due time, so the first call's includes the whole wait.
    """
    requests, schedule = [Request(b"x", rows=1)], poisson(40, 0.5, 1, seed=5)
    everybody = threading.Barrier(len(schedule.due))

    def answer_together(request: bytes, context: grpc.ServicerContext) -> bytes:
        everybody.wait(timeout=120)
        return b""

    recording = OpenLoop(serve(answer_together, workers=40)).run(requests, schedule)
    assert recording.codes == {"OK": len(schedule.due)}
    waited = sorted((call.due, call.answered - call.due) for call in recording.calls)
    assert all(latency >= schedule.due[-1] - due for due, latency in waited)


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
        (100, 1, 99, True),  # a single delay may come from the machine
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


def test_a_missing_server_shows_in_the_calls():
    recording = OpenLoop("127.0.0.1:1").run(REQUESTS, at(0.0, 0.0))
    assert recording.codes == {"UNAVAILABLE": 2}
    assert "cannot connect to 127.0.0.1:1: Connection refused" in recording.first_error


def test_a_connection_that_ends_is_opened_again(serve: Any):
    ends = {"grpc.max_connection_age_ms": 250, "grpc.max_connection_age_grace_ms": 100}
    target = serve(lambda request, context: context.peer().encode(), **ends)
    loop = OpenLoop(target, connections=1, keep_every=1)
    recording = loop.run(REQUESTS, at(*np.arange(0, 1, 0.02)))
    assert recording.codes == {"OK": 50}
    assert len({sample.response for sample in recording.samples}) > 2


def test_a_sender_that_fails_says_why():
    with pytest.raises(RuntimeError, match=r"cannot find no\.such\.invalid:1"):
        OpenLoop("no.such.invalid:1").run(REQUESTS, at(0.0))


def test_a_missing_sender_is_named_with_the_package_that_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv("COLCAST_MODEL_SERVER", raising=False)
    monkeypatch.setattr("colcast.server._executable._folders", lambda: [tmp_path])
    with pytest.raises(ServerNotBuiltError, match=r"colcast_sender not found.*colcast_server"):
        OpenLoop("127.0.0.1:1").run(REQUESTS, at(0.0))


def gaps(seed: int) -> np.ndarray:
    due = poisson(rate=250, seconds=41, distinct=7, seed=seed).due
    return np.diff(due[:10_001])


@pytest.mark.parametrize("seed", range(5))
def test_gaps_are_exponential(seed: int):
    found = gaps(seed)
    assert len(found) == 10_000
    assert found.std() / found.mean() == pytest.approx(1, abs=0.05)
    assert stats.kstest(found, stats.expon(scale=1 / 250).cdf).pvalue > 0.01


def test_the_rate_is_met_and_nothing_is_due_after_the_end():
    schedule = poisson(rate=1000, seconds=20, distinct=3, seed=4)
    assert len(schedule.due) == pytest.approx(20_000, rel=0.03)
    assert schedule.due[-1] < 20
    assert (np.diff(schedule.due) >= 0).all()


def test_every_request_is_taken_once_before_any_is_taken_again():
    request = poisson(rate=100, seconds=3, distinct=8, seed=1).request
    rounds = request[: len(request) // 8 * 8].reshape(-1, 8)
    assert (np.sort(rounds, axis=1) == np.arange(8)).all()


def test_pareto_sizes_have_the_tail_asked_for():
    sizes = draw(parse_sizes("pareto:20:1:1000"), 1000, seed=3)
    assert sizes.min() == 20
    assert sizes.max() == 1000
    for size in (40, 100, 400):
        assert (sizes > size).mean() == pytest.approx(20 / (size + 0.5), abs=0.002)


def test_lognormal_sizes_meet_the_quantiles_asked_for():
    sizes = draw(parse_sizes("lognormal:200:0.8"), 1000, seed=3)
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        wanted = 200 * np.exp(0.8 * stats.norm.ppf(q))
        assert np.quantile(sizes, q) == pytest.approx(wanted, rel=0.02)


def test_sizes_come_from_a_list_or_a_file(tmp_path: Path):
    (tmp_path / "sizes.txt").write_text("5\n5\n9\n")
    assert sorted(draw(parse_sizes("20,100,500"), 6, 0).tolist()) == [20, 20, 100, 100, 500, 500]
    assert sorted(draw(parse_sizes(f"file:{tmp_path}/sizes.txt"), 3, 0).tolist()) == [5, 5, 9]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("many", "'many'"),
        ("mlperf", "'mlperf'"),
        ("0", "0 candidates are too few"),
        ("10,-2", "-2 candidates"),
        ("20,99999999", "99,999,999 candidates are more than 1,048,576"),
        ("pareto:20:1", "unpack"),
        ("pareto:20:0:100", "alpha above 0"),
        ("pareto:20:1:10", "smallest <= largest"),
        ("lognormal:5", "unpack"),
        ("lognormal:0:1", "at least 1"),
        ("file:/does/not/exist", "No such file"),
        ("", "invalid literal"),
    ],
)
def test_invalid_sizes_are_refused(text: str, reason: str):
    with pytest.raises(ValueError, match=f"sizes '{text}'.*{reason}.*expected a number"):
        parse_sizes(text)
