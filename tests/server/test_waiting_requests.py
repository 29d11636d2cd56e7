"""Waiting requests run together, and no client's requests wait for all of another client's.

Pipes block requests, so that others wait.
"""

import http.client
import json
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .. import models
from ..models import stages_model
from ..models.impure import Gate
from ..waiting import wait_until
from .metrics_page import Metrics, of_predicts, until_joined
from .servers import ONE_WORKER, WHOLE_AND_ALONE, Stubs

LATE = "columnar_late"


@pytest.fixture(scope="module", name="gated_path")
def _gated_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp("gated")
    models.build("gated", base_path / "1")
    return base_path


# Here, requests of up to one second do not count as long, because the machine may be busy.
def test_long_requests_that_cannot_be_split_leave_a_worker_to_others(
    serve, gated_path, ranker_base_path, connect, tmp_path, ranker_inputs
):
    gated, ranker = (serve(path, *ONE_WORKER) for path in (gated_path, ranker_base_path))
    attacker, victim = (
        connect(gated.server.target, own_connection=True, model=one.model)
        for one in (gated, ranker)
    )
    for _ in range(5):  # teaches the server that these are short
        victim.predict(ranker_inputs)
    held = [Gate(tmp_path / "first"), Gate(tmp_path / "second")]
    answers = []
    for gate in held:  # large, and of unknown cost
        inputs = {"path": str(gate.path), "x": np.arange(100_000, dtype=np.float32)}
        request = attacker.request(inputs)
        answers.append(attacker.prediction.Predict.future(request, timeout=120))
    wait_until(lambda: any(gate.is_reached() for gate in held))
    first, second = held if held[0].is_reached() else reversed(held)
    for _ in range(5):
        assert len(victim.predict(ranker_inputs)["score"]) == 3
    assert not second.is_reached()
    first.open()
    second.open()
    for answer in answers:
        assert "Illegal seek" in answer.details()  # TensorFlow cannot read a pipe as a file


def ask_over_http(gated: Stubs, path: str, is_another: bool) -> None:
    """Sends a request from one of two hosts."""
    host, port = gated.server.rest_target.split(":")
    source = ("127.0.0.2" if is_another else "127.0.0.1", 0)
    connection = http.client.HTTPConnection(host, int(port), 120, source)
    body = json.dumps({"inputs": {"path": path, "x": [1.0]}})
    connection.request("POST", f"/v1/models/{gated.model}:predict", body)
    connection.getresponse()
    connection.close()


def ask_by_name(gated: Stubs, path: str, is_another: bool) -> None:
    """Sends a request of one of two callers, on a connection of its own."""
    stubs = Stubs(gated.server.target, own_connection=True, model=gated.model)
    caller = (("x-colcast-caller", "another" if is_another else "one"),)
    request = stubs.request({"path": path, "x": [1.0]})
    answer = stubs.prediction.Predict.future(request, timeout=120, metadata=caller)
    assert "Illegal seek" in answer.details()
    stubs.channel.close()


@pytest.mark.parametrize("ask", [ask_over_http, ask_by_name])
def test_a_host_or_caller_does_not_wait_for_all_requests_of_another_one(
    ask: Callable[..., None], serve: Callable[..., Stubs], gated_path: Path, tmp_path: Path
):
    """The order itself is tested in request_queue_test.cc."""
    gated = serve(gated_path, *ONE_WORKER)
    held, *gates = [Gate(tmp_path / str(number)) for number in range(14)]
    clients = []
    for number, gate in enumerate([held, *gates]):
        args = (gated, str(gate.path), gate is gates[-1])
        clients.append(threading.Thread(target=ask, args=args))
        clients[-1].start()
        if gate is held:
            wait_until(held.is_reached)
        wait_until(lambda n=number: Metrics(gated.server).value(":colcast:queue_length") == n)
    held.open()
    order: list[Gate] = []

    def reached() -> list[Gate]:
        return [gate for gate in gates if gate.is_reached() and gate not in order]

    while len(order) < len(gates):
        wait_until(reached)
        order.extend(reached())
        order[-1].open()
    for client in clients:
        client.join()
    assert order.index(gates[-1]) < 3


def inputs_of(seed: int) -> dict[str, Any]:
    """A random request of one user and 1 to 30 candidates."""
    draw = np.random.default_rng(seed)
    return stages_model.inputs(draw, 1, int(draw.integers(1, 31)), int(draw.integers(1, 4)))


def body_of(columns: dict[str, Any]) -> bytes:
    listed = {name: values.tolist() for name, values in columns.items()}
    return json.dumps({"signature_name": LATE, "inputs": listed}).encode()


def test_a_new_version_under_load_mixes_neither_runs_nor_states_with_the_old_one(
    tmp_path: Path, serve: Callable[..., Stubs]
):
    base_path = tmp_path / "ranker"
    stages_model.save(base_path / "1", weight=1.0)
    stubs = serve(base_path, *ONE_WORKER)
    inputs = inputs_of(3)
    request = stubs.request(inputs, signature_name=LATE, output_filter=["score"])
    expected = {1: stubs.predict(inputs, signature_name=LATE)["score"]}
    answers: set[tuple[int, tuple[float, ...]]] = set()

    def send() -> bool:
        calls = [stubs.prediction.Predict.future(request, timeout=60) for _ in range(64)]
        got = [call.result() for call in calls]
        answers.update(
            (answer.model_spec.version.value, tuple(answer.outputs["score"].float_val))
            for answer in got
        )
        joined = of_predicts(stubs, "joined_requests", LATE) > 0
        return joined and stubs.states()[1][0] == "END"

    send()
    stages_model.save(tmp_path / "2", weight=3.0)
    (tmp_path / "2").rename(base_path / "2")
    wait_until(send)
    send()
    expected[2] = stubs.predict(inputs, signature_name=LATE, version=2)["score"]
    assert not np.allclose(expected[1], expected[2])
    for version, scores in answers:
        np.testing.assert_allclose(scores, expected[version], rtol=0, atol=1e-6)
    assert {version for version, _ in answers} == {1, 2}
    labels = {"model_name": stubs.model, "version": "1", "signature_name": LATE}
    assert Metrics(stubs.server).value(":colcast:states", store="item", **labels) == 0


def test_requests_over_rest_run_together_too(serve, stages_path):
    together, alone = (serve(stages_path, *flags) for flags in (ONE_WORKER, WHOLE_AND_ALONE))

    def ask(stubs: Stubs, number: int) -> Any:
        body = body_of(inputs_of(number) | {"history": inputs_of(7)["history"]})
        url = f"http://{stubs.server.rest_target}/v1/models/{stubs.model}:predict"
        with urllib.request.urlopen(url, body, timeout=60) as answer:
            return json.load(answer)["outputs"]["score"]

    expected = [ask(alone, number) for number in range(40)]
    with ThreadPoolExecutor(16) as threads:

        def ask_all() -> None:
            answers = list(threads.map(lambda n: ask(together, n), range(40)))
            for got, wanted in zip(answers, expected, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)

        until_joined(ask_all, together, LATE, "REST")


def test_lanes_count_the_waits_of_short_requests_and_of_pieces_of_long_ones(serve, stages_path):
    small, large = (stages_model.inputs(np.random.default_rng(rows), 1, rows) for rows in (2, 4000))
    flags = ["--num_workers=2", "--max_piece_milliseconds=0.5", "--long_request_nice=10"]
    stubs = serve(stages_path, *flags)
    asked = 0

    def waits(lane: str) -> float:
        return Metrics(stubs.server).value(":colcast:lane_wait_microseconds_count", lane=lane)

    def long_ones_have_waited() -> bool:
        nonlocal asked
        for inputs in (small, large):
            stubs.predict(inputs, signature_name=LATE)
            asked += 1
        return waits("long") >= 4

    wait_until(long_ones_have_waited)
    pieces = of_predicts(stubs, "pieces", LATE)
    assert pieces >= 2
    # Each request waits for a worker once, and each of its slices waits once more.
    assert waits("short") + waits("long") == asked + pieces
    assert waits("short") >= asked / 2
