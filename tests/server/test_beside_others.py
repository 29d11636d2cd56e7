"""A client's requests do not wait for those of other clients; here, pipes block the others."""

import http.client
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .. import models
from ..models.impure import Gate
from .metrics_page import Metrics
from .servers import ONE_WORKER, Stubs


def many(rows: int) -> np.ndarray:
    return np.arange(rows, dtype=np.float32)


@pytest.fixture(scope="module", name="gated_path")
def _gated_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp("gated")
    models.build("gated", base_path / "1")
    return base_path


@pytest.fixture(scope="module", name="gated")
def _gated(serve: Any, gated_path: Path) -> Stubs:
    return serve(gated_path, *ONE_WORKER)


# Here, requests of up to one second do not count as long, because the machine may be busy.
@pytest.mark.parametrize(
    "flags",
    [ONE_WORKER, ("--num_workers=2", "--max_piece_milliseconds=1000")],
    ids=["one worker", "two workers"],
)
def test_long_requests_that_cannot_be_split_leave_a_worker_to_others(
    serve, gated_path, ranker_base_path, flags, connect, tmp_path, ranker_inputs, wait_until
):
    target, names = "", []
    for base_path in (gated_path, ranker_base_path):
        stubs = serve(base_path, *flags)
        target, names = stubs.server.target, [*names, stubs.model]
    attacker, victim = (connect(target, own_connection=True, model=name) for name in names)
    for _ in range(5):  # teaches the server that these are short
        victim.predict(ranker_inputs)
    held = [Gate(tmp_path / "first"), Gate(tmp_path / "second")]
    answers = []
    for gate in held:
        inputs = {"path": str(gate.path), "x": many(100_000)}  # large, and of unknown cost
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


@pytest.fixture(name="place_of_another_clients")
def _place_of_another_clients(gated: Stubs, tmp_path: Path, wait_until: Any) -> Any:
    """A function that returns the place of another client's request among 41 waiting requests."""

    def place(ask: Any) -> int:
        held, *gates = [Gate(tmp_path / str(number)) for number in range(42)]
        clients = []
        for number, gate in enumerate([held, *gates]):
            args = (str(gate.path), number == len(gates))
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
        return order.index(gates[-1])

    return place


def test_a_host_does_not_wait_for_all_requests_of_another_one_over_http(
    gated, place_of_another_clients
):
    def ask(path: str, is_another: bool) -> None:
        host, port = gated.server.rest_target.split(":")
        source = ("127.0.0.2" if is_another else "127.0.0.1", 0)
        connection = http.client.HTTPConnection(host, int(port), 120, source)
        body = json.dumps({"inputs": {"path": path, "x": [1.0]}})
        connection.request("POST", f"/v1/models/{gated.model}:predict", body)
        connection.getresponse()
        connection.close()

    assert place_of_another_clients(ask) < 3


def test_a_connection_does_not_wait_for_all_requests_of_another_one(
    gated, connect, place_of_another_clients
):
    connections: dict[bool, Any] = {}

    def ask(path: str, is_another: bool) -> None:
        if is_another not in connections:
            connections[is_another] = connect(gated.server.target, own_connection=True)
        stubs = connections[is_another]
        request = stubs.request({"path": path, "x": [1.0]}, name=gated.model)
        assert "Illegal seek" in stubs.prediction.Predict.future(request, timeout=120).details()

    assert place_of_another_clients(ask) < 3


def test_a_caller_does_not_wait_for_all_requests_of_another_one_on_many_connections(
    gated, connect, place_of_another_clients
):
    def ask(path: str, is_another: bool) -> None:
        stubs = connect(gated.server.target, own_connection=True)
        request = stubs.request({"path": path, "x": [1.0]}, name=gated.model)
        caller = (("x-colcast-caller", "another" if is_another else "one"),)
        answer = stubs.prediction.Predict.future(request, timeout=120, metadata=caller)
        assert "Illegal seek" in answer.details()

    assert place_of_another_clients(ask) < 3
