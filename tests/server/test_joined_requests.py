"""Waiting requests run together; each is answered as if it had run alone."""

import http.client
import json
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from ..models import stages_model
from .metrics_page import Metrics, of_predicts
from .servers import ONE_WAITS, ONE_WORKER, WHOLE_AND_ALONE, Stubs, held_worker

Code = grpc.StatusCode


@pytest.fixture(scope="module", name="alone")
def _alone(serve: Callable[..., Stubs], stages_path: Path) -> Stubs:
    return serve(stages_path, *WHOLE_AND_ALONE)


@pytest.fixture(scope="module", name="together")
def _together(serve: Callable[..., Stubs], stages_path: Path) -> Stubs:
    """Stubs of a server with one worker, so requests that arrive during a run wait."""
    return serve(stages_path, *ONE_WORKER)


def inputs_of(seed: int) -> dict[str, Any]:
    """A random request of one user and 1 to 30 candidates."""
    draw = np.random.default_rng(seed)
    return stages_model.inputs(draw, 1, int(draw.integers(1, 31)), int(draw.integers(1, 4)))


def joined(stubs: Stubs, signature: str = "columnar_late", entrypoint: str = "GRPC") -> float:
    return of_predicts(stubs, "joined_requests", signature, entrypoint)


def test_deadlines_and_hang_ups_are_those_of_one_request(together, serve, tmp_path):
    """Every deadline passes while all requests wait for the worker."""
    before = joined(together)

    def send(number: int, timeout: float) -> Any:
        request = together.request(inputs_of(number), signature_name="columnar_late")
        return together.prediction.Predict.future(request, timeout=timeout)

    with held_worker(tmp_path, serve, *ONE_WORKER) as (_, gate):
        calls = [send(n, [300, 0.1, 300][n % 3]) for n in range(90)]
        for call in calls[2::3]:
            call.cancel()
        assert {call.code() for call in calls[1::3]} == {Code.DEADLINE_EXCEEDED}
        assert {call.code() for call in calls[2::3]} == {Code.CANCELLED}
        gate.open()
        assert {call.code() for call in calls[::3]} == {Code.OK}
    assert joined(together) > before


def test_a_new_version_under_load_never_mixes_with_the_old_one(tmp_path, serve, wait_until):
    base_path = tmp_path / "ranker"
    stages_model.save(base_path / "1", weight=1.0)
    stubs = serve(base_path, *ONE_WORKER)
    inputs = inputs_of(3)
    request = stubs.request(inputs, signature_name="columnar_late", output_filter=["score"])
    expected = {1: stubs.predict(inputs, signature_name="columnar_late")["score"]}
    answers: set[tuple[int, tuple[float, ...]]] = set()

    def send() -> bool:
        calls = [stubs.prediction.Predict.future(request, timeout=60) for _ in range(64)]
        got = [call.result() for call in calls]
        answers.update(
            (answer.model_spec.version.value, tuple(answer.outputs["score"].float_val))
            for answer in got
        )
        return 2 in dict(answers)

    send()
    stages_model.save(base_path / "2", weight=3.0)
    wait_until(send, timeout_seconds=120)
    send()
    expected[2] = stubs.predict(inputs, signature_name="columnar_late", version=2)["score"]
    assert not np.allclose(expected[1], expected[2])
    for version, scores in answers:
        np.testing.assert_allclose(scores, expected[version], rtol=0, atol=1e-6)
    assert {version for version, _ in answers} == {1, 2}
    assert joined(stubs) > 0


def test_an_accepted_rest_request_is_answered_though_the_queue_fills_while_it_is_parsed(
    serve, stages_path, wait_until
):
    columns = stages_model.inputs(np.random.default_rng(1), 1, 100_000)
    listed = {name: values.tolist() for name, values in columns.items()}
    body = json.dumps({"signature_name": "columnar_late", "inputs": listed}).encode()
    stubs = serve(stages_path, *ONE_WAITS)
    request = stubs.request(inputs_of(1), signature_name="columnar_late")

    def post() -> int:
        connection = http.client.HTTPConnection(stubs.server.rest_target, timeout=60)
        connection.request("POST", f"/v1/models/{stubs.model}:predict", body)
        status = connection.getresponse().status
        connection.close()
        return status

    def keep_the_queue_full(done: threading.Event) -> None:
        while not done.is_set():
            calls = [stubs.prediction.Predict.future(request, timeout=60) for _ in range(4)]
            assert {call.code() for call in calls} <= {Code.OK, Code.RESOURCE_EXHAUSTED}

    def answered() -> bool:
        statuses.append(post())  # 429 if the queue is full
        return statuses.count(200) >= 3

    statuses: list[int] = []
    done = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        others = thread.submit(keep_the_queue_full, done)
        try:
            wait_until(answered)
        finally:
            done.set()
        others.result()


def test_requests_over_rest_run_together_too(alone, together, wait_until):
    def body(number: int) -> bytes:
        columns = inputs_of(number) | {"history": inputs_of(7)["history"]}
        listed = {name: values.tolist() for name, values in columns.items()}
        return json.dumps({"signature_name": "columnar_late", "inputs": listed}).encode()

    def ask(stubs: Stubs, number: int) -> Any:
        url = f"http://{stubs.server.rest_target}/v1/models/{stubs.model}:predict"
        with urllib.request.urlopen(url, body(number), timeout=60) as answer:
            return json.load(answer)["outputs"]["score"]

    expected = [ask(alone, number) for number in range(40)]
    with ThreadPoolExecutor(16) as threads:

        def some_ran_together() -> bool:
            answers = list(threads.map(lambda n: ask(together, n), range(40)))
            for got, wanted in zip(answers, expected, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)
            return joined(together, entrypoint="REST") > 0

        wait_until(some_ran_together)


def test_lanes_count_the_waits_of_short_requests_and_of_pieces_of_long_ones(
    serve, stages_path, alone, wait_until
):
    small = stages_model.inputs(np.random.default_rng(5), 1, 2)
    large = stages_model.inputs(np.random.default_rng(6), 1, 4000)
    flags = ["--num_workers=2", "--max_piece_milliseconds=0.5", "--long_request_nice=10"]
    stubs = serve(stages_path, *flags)
    expected = alone.predict(large, signature_name="columnar_late")["score"]
    asked = 0

    def waits(lane: str) -> float:
        return Metrics(stubs.server).value(":colcast:lane_wait_microseconds_count", lane=lane)

    def long_ones_have_waited() -> bool:
        nonlocal asked
        for inputs in (small, large):
            answer = stubs.predict(inputs, signature_name="columnar_late")
            asked += 1
        np.testing.assert_allclose(answer["score"], expected, rtol=0, atol=1e-6)
        return waits("long") >= 4

    wait_until(long_ones_have_waited)
    pieces = of_predicts(stubs, "pieces", "columnar_late")
    assert pieces >= 2
    # Each request waits for a worker once, and each of its slices waits once more.
    assert waits("short") + waits("long") == asked + pieces
    assert waits("short") >= asked / 2
