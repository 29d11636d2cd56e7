"""Clients that wait for their answers, and take turns."""

import threading
from collections import Counter
from functools import partial
from typing import Any

import grpc
import pytest
from colcast.loadtest.measure.closed_loop import ClosedLoop
from colcast.loadtest.measure.run import in_turn
from colcast.loadtest.send.connection import Connection, Request


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
        all_three.wait(timeout=120)  # passes only if three clients are here at once
        with lock:
            busy.pop()
        return b""

    with ClosedLoop(partial(Connection, serve(watch, workers=8)), clients=3) as clients:
        recording = clients.run(requests(b"a"), calls=9)
    assert recording.codes == {"OK": 9}
    assert max(most) == 3


def test_each_client_has_its_own_connection(serve: Any):
    peers, both = set(), threading.Barrier(2)

    def watch(request: bytes, context: grpc.ServicerContext) -> bytes:
        peers.add(context.peer())
        both.wait(timeout=120)
        return b""

    with ClosedLoop(partial(Connection, serve(watch)), clients=2) as clients:
        clients.run(requests(b"a"), calls=2)
    assert len(peers) == 2


def test_bytes_go_through_untouched_whatever_their_size(serve: Any):
    payload = bytes(range(256)) * 40_000  # 10 MB, beyond gRPC's default limit of 4
    with Connection(serve(lambda request, _: request)) as connection:
        assert connection.call(Request(payload, rows=1)).response == payload


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


def test_results_are_in_the_order_of_the_things_and_rounds():
    found = in_turn("ab", lambda thing, number: f"{thing}{number}", rounds=2)
    assert found == [["a0", "a1"], ["b0", "b1"]]
