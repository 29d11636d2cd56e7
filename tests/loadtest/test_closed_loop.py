"""Clients that wait for their answers and take turns; figures of a run, compared answers."""

import math
import threading
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.loadtest.measure.closed_loop import ClosedLoop
from colcast.loadtest.measure.correctness import check, outputs_difference, reference_answers
from colcast.loadtest.measure.recording import Recording, Sample
from colcast.loadtest.measure.run import in_turn
from colcast.loadtest.measure.series import Series, Target, _answered
from colcast.loadtest.send.connection import Answer, Connection, Request
from colcast.loadtest.send.formats import RequestData
from tensorflow_serving.apis import predict_pb2


def requests(*payloads: bytes) -> list[Request]:
    return [Request(payload, rows=len(payload)) for payload in payloads]


def echo(request: bytes, context: grpc.ServicerContext) -> bytes:
    return request * 2


def test_calls_cycle_through_the_requests(serve: Any):
    received: Counter[bytes] = Counter()

    def count(request: bytes, context: grpc.ServicerContext) -> bytes:
        received[request] += 1
        return b""

    with ClosedLoop(partial(Connection, serve(count, workers=1)), clients=3) as clients:
        recording = clients.run(requests(b"a", b"bb", b"ccc"), calls=10)
    assert received == {b"a": 4, b"bb": 3, b"ccc": 3}
    assert len(recording.calls) == 10
    assert sum(call.rows for call in recording.calls) == 4 * 1 + 3 * 2 + 3 * 3
    assert recording.bytes_per_request == 1.9


def test_no_more_clients_are_busy_than_requested(serve: Any):
    busy, most, lock = [], [], threading.Lock()
    all_three = threading.Barrier(3)

    def watch(request: bytes, context: grpc.ServicerContext) -> bytes:
        with lock:
            busy.append(1)
            most.append(len(busy))
        all_three.wait(timeout=120)  # returns only when three clients are here
        with lock:
            busy.pop()
        return b""

    with ClosedLoop(partial(Connection, serve(watch, workers=8)), clients=3) as clients:
        recording = clients.run(requests(b"a"), calls=9)
    assert recording.codes == {"OK": 9}
    assert max(most) == 3


def test_failed_calls_are_counted_by_code_and_have_no_latency(serve: Any):
    def half(request: bytes, context: grpc.ServicerContext) -> bytes:
        if request == b"bad":
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "input 'a': 2 rows")
        return b"fine"

    with ClosedLoop(partial(Connection, serve(half)), clients=2) as clients:
        recording = clients.run(requests(b"good", b"bad"), calls=10)
    assert recording.codes == {"OK": 5, "INVALID_ARGUMENT": 5}
    assert recording.errors == len(recording.latencies) == 5
    assert recording.bytes_per_response == len(b"fine")
    assert recording.first_error == "INVALID_ARGUMENT: input 'a': 2 rows"


def test_an_answer_that_does_not_come_is_a_deadline_exceeded(serve: Any):
    never = threading.Event()
    target = serve(lambda request, context: (never.wait(20) and b"") or b"")
    try:
        with Connection(target, timeout_seconds=0.05) as connection:
            assert connection.call(Request(b"", rows=1)).code == "DEADLINE_EXCEEDED"
    finally:
        never.set()


def test_a_missing_server_is_counted_as_unavailable():
    with ClosedLoop(partial(Connection, "127.0.0.1:1"), clients=1) as clients:
        recording = clients.run(requests(b"a"), calls=2)
    assert recording.codes == {"UNAVAILABLE": 2}
    assert recording.per_second == 0


def test_figures_are_per_answered_request(serve: Any):
    with ClosedLoop(partial(Connection, serve(echo)), clients=1) as clients:
        recording = clients.run(requests(b"four"), calls=8)
    recording.server_cpu_seconds = 0.016
    recording.wall_seconds = 2.0
    assert recording.server_cpu_ms == pytest.approx(2.0)
    assert recording.per_second == pytest.approx(4.0)
    assert recording.bytes_per_request == 4
    assert recording.bytes_per_response == 8
    assert 0 < recording.latency_ms(50) <= recording.latency_ms(99)


def test_the_first_variant_changes_from_round_to_round():
    order: list[tuple[str, int]] = []
    in_turn("abc", lambda thing, number: order.append((thing, number)), rounds=3)
    assert order == [
        *[("a", 0), ("b", 0), ("c", 0)],
        *[("b", 1), ("c", 1), ("a", 1)],
        *[("c", 2), ("a", 2), ("b", 2)],
    ]


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


def test_runs_one_after_the_other_are_put_on_one_time_line():
    found = recording((0.0, 0.5), wall=2.0)
    found.extend(recording((0.25, 0.5), wall=1.0))
    assert [call.sent for call in found.calls] == pytest.approx([0.0, 2.25])
    assert found.wall_seconds == 3.0
    assert found.latencies.tolist() == pytest.approx([0.5, 0.25])


def test_figures_of_nothing_are_not_a_number_rather_than_zero():
    nothing = Recording()
    figures = [nothing.server_cpu_ms, nothing.bytes_per_request, nothing.latency_ms(99)]
    assert all(math.isnan(figure) for figure in figures)
    assert nothing.errors == 0
    assert np.isnan(recording((0.0, 0.1)).server_cpu_ms)


REQUESTS = [Request(b"", rows=1)] * 2


def response(**outputs: Any) -> bytes:
    message = predict_pb2.PredictResponse()
    for name, values in outputs.items():
        message.outputs[name].CopyFrom(tf.make_tensor_proto(values))
    return bytes(message.SerializeToString())


@pytest.mark.parametrize(
    ("expected", "got", "difference"),
    [
        ([0.5, 0.25], [0.5, 0.25], 0.0),
        ([0.5, 0.25], [0.5, 0.5], 0.5),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [np.nan, 3.0], 2.0),
        ([np.inf], [np.inf], 0.0),
        ([np.nan], [1.0], np.inf),
        ([np.inf], [1.0], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
        ([1.0], [1], np.inf),
        ([b"a"], [b"a"], 0.0),
        ([b"a"], [b"b"], np.inf),
        ([True], [False], np.inf),
        ([], [], 0.0),
    ],
)
def test_the_difference_of_two_outputs(expected: list, got: list, difference: float):
    one, two = (np.array(values) for values in (expected, got))
    one, two = (v.astype(object) if v.dtype.kind == "S" else v for v in (one, two))
    assert outputs_difference({"score": one}, {"score": two}) == difference


def test_samples_are_compared_with_their_own_requests_answer():
    expected = [{"score": np.array([0.1], np.float32)}, {"score": np.array([0.9], np.float32)}]
    samples = [
        Sample(0, response(score=np.array([0.1], np.float32))),
        Sample(1, response(score=np.array([0.9], np.float32))),
        Sample(0, response(score=np.array([0.9], np.float32))),
    ]
    found = check(samples, REQUESTS, expected, tolerance=1e-6)
    assert (found.checked, found.wrong) == (3, 1)
    assert found.largest == pytest.approx(8)


def test_an_answer_that_cannot_be_read_is_wrong():
    found = check([Sample(0, b"\xff")], REQUESTS, [{"score": np.zeros(1)}], tolerance=1.0)
    assert (found.wrong, found.largest) == (1, np.inf)


def test_a_request_the_server_refuses_is_named(serve: Any):
    def refuse(request: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no input 'x'")
        raise AssertionError

    target = serve(refuse)
    with pytest.raises(RuntimeError, match=r"request 0 is refused, INVALID_ARGUMENT: no input 'x'"):
        reference_answers(target, [Request(b"", rows=1)])


REFUSAL = "indices[3] = 90210 is not in [0, 1000) in node " + "model/embedding/Gather/" * 20


def refusing(request: bytes, context: grpc.ServicerContext) -> bytes:
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, REFUSAL)
    raise AssertionError


GENERATED = RequestData(rows=1, user={"a": 1}, items=[{"b": 2}])


@pytest.mark.parametrize(
    ("data", "advised"), [(GENERATED, True), (replace(GENERATED, recorded=b"x"), False)]
)
def test_a_refusal_is_summarised_with_the_traffic_to_try(
    serve: Any, data: RequestData, advised: bool
):
    target = Target("", serve(refusing))
    written = [Series(target, "late", [Request(b"", 1)])]
    _, (left_out,) = _answered(written, [data])
    assert REFUSAL.strip("/") in left_out.reason
    reason = str(left_out)
    assert reason.startswith("late is left out: request 0 is refused, INVALID_ARGUMENT: indices[3]")
    assert reason.endswith("try --traffic requests:FILE or examples:FILE") == advised
    assert len(reason) < 240


def test_the_largest_difference_from_the_first_format_counts(serve: Any):
    answers = {b"a": 1.0, b"b": 2.0, b"c": 1.0, b"d": 3.0}
    target = Target("", serve(lambda request, _: response(score=[answers[request]])))
    written = [
        Series(target, name, [Request(payload, 1) for payload in payloads])
        for name, payloads in (("example", (b"a", b"b")), ("late", (b"c", b"d")))
    ]
    series, left_out = _answered(written, [])
    assert [one.difference for one in series] == [0.0, 0.5]
    assert left_out == []
