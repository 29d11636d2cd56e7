"""What one client asks, others do not wait for: each case holds a run where a pipe is read."""

import http.client
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from colcast.server import ServerProcess

from .. import models
from ..models.gated import Gate
from .conftest import config_flag
from .metrics_page import Metrics


def many(rows: int) -> np.ndarray:
    """A column of so many rows."""
    return np.arange(rows, dtype=np.float32)


@pytest.fixture(scope="module", name="config")
def _config(tmp_path_factory: pytest.TempPathFactory, ranker_versions: Any) -> str:
    folder = tmp_path_factory.mktemp("models")
    ranker_versions(folder / "ranker" / "1")
    models.build("gated", folder / "gated" / "1")
    return config_flag(folder / "config", {name: folder / name for name in ("ranker", "gated")})


@pytest.fixture(scope="module", name="serve")
def _serve(config: str, shared: Any, monitoring: list[str]) -> Any:
    # Of a request that takes up to a second nobody says that it is long: the machine may be busy.
    flags = [*monitoring, config, "--max_piece_milliseconds=1000", "--caller_header=x-caller"]
    return lambda workers: shared("", "", *flags, f"--num_workers={workers}")


@pytest.fixture(name="any_server", params=[1, 2], ids=["one worker", "two workers"])
def _any_server(request: Any, serve: Any) -> ServerProcess:
    return serve(request.param)


def test_long_requests_that_cannot_be_split_leave_a_worker_to_others(
    any_server, connect, tmp_path, ranker_inputs, wait_until
):
    attacker, victim = (connect(any_server.target, own_connection=True) for _ in range(2))
    for _ in range(5):  # its requests are known to be short
        victim.predict(ranker_inputs)
    held = [Gate(tmp_path / "first"), Gate(tmp_path / "second")]
    answers = []
    for gate in held:
        inputs = {"path": str(gate.path), "x": many(100_000)}  # of unknown cost, and large
        request = attacker.request(inputs, name="gated")
        answers.append(attacker.prediction.Predict.future(request, timeout=120))
    wait_until(lambda: any(gate.is_reached() for gate in held))
    first, second = held if held[0].is_reached() else reversed(held)
    for _ in range(5):
        assert len(victim.predict(ranker_inputs)["score"]) == 3
    assert not second.is_reached()
    first.open()
    second.open()
    for answer in answers:
        assert "Illegal seek" in answer.details()  # a pipe is no file


def rest_predict(server: ServerProcess, name: str, inputs: dict[str, Any], source: str) -> int:
    host, port = server.rest_target.split(":")
    connection = http.client.HTTPConnection(
        host, int(port), timeout=120, source_address=(source, 0)
    )
    connection.request("POST", f"/v1/models/{name}:predict", json.dumps({"inputs": inputs}))
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.fixture(name="place_of_another_clients")
def _place_of_another_clients(serve: Any, tmp_path: Path, wait_until: Any) -> Any:
    """Where in the order of runs another client's request is, of 41 that wait for one worker."""

    def place(ask: Any) -> int:
        server = serve(1)
        held, *gates = [Gate(tmp_path / str(number)) for number in range(42)]
        clients = []
        for number, gate in enumerate([held, *gates]):
            args = (server, str(gate.path), number == len(gates))
            clients.append(threading.Thread(target=ask, args=args))
            clients[-1].start()
            if gate is held:
                wait_until(held.is_reached)
            wait_until(lambda n=number: Metrics(server).value(":colcast:queue_length") == n)
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


def test_a_host_does_not_wait_for_all_requests_of_another_one_over_http(place_of_another_clients):
    def ask(server: ServerProcess, path: str, is_another: bool) -> None:
        source = "127.0.0.2" if is_another else "127.0.0.1"
        rest_predict(server, "gated", {"path": path, "x": [1.0]}, source)

    assert place_of_another_clients(ask) < 3


def test_a_connection_does_not_wait_for_all_requests_of_another_one(
    connect, place_of_another_clients
):
    connections: dict[bool, Any] = {}

    def ask(server: ServerProcess, path: str, is_another: bool) -> None:
        if is_another not in connections:
            connections[is_another] = connect(server.target, own_connection=True)
        stubs = connections[is_another]
        request = stubs.request({"path": path, "x": [1.0]}, name="gated")
        assert "Illegal seek" in stubs.prediction.Predict.future(request, timeout=120).details()

    assert place_of_another_clients(ask) < 3


def test_a_caller_does_not_wait_for_all_requests_of_another_one_on_many_connections(
    connect, place_of_another_clients
):
    def ask(server: ServerProcess, path: str, is_another: bool) -> None:
        stubs = connect(server.target, own_connection=True)
        request = stubs.request({"path": path, "x": [1.0]}, name="gated")
        caller = (("x-caller", "another" if is_another else "one"),)
        answer = stubs.prediction.Predict.future(request, timeout=120, metadata=caller)
        assert "Illegal seek" in answer.details()

    assert place_of_another_clients(ask) < 3
