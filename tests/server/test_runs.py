"""Which program answers a request, what state caches keep of it, and when it runs."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from colcast.export import export_saved_model

from .. import models
from ..models import impure, stages_model
from ..models.impure import Gate
from ..waiting import wait_until
from .metrics_page import Metrics, of_predicts
from .servers import ONE_WORKER, Stubs

LATE = "columnar_late"


def count(stubs: Stubs, what: str, store: str) -> float:
    """The value of a counter or gauge of a state cache."""
    labels = {"model_name": stubs.model, "version": "1", "signature_name": LATE}
    return Metrics(stubs.server).value(f":colcast:{what}", store=store, **labels)


@pytest.fixture(name="counted")
def _counted(serve: Callable[..., Stubs], stages_path: Path) -> Stubs:
    """A model that only this test uses, on a server that does not split requests."""
    return serve(stages_path, *ONE_WORKER)


def test_a_request_without_candidates_computes_the_user_in_advance(counted: Stubs) -> None:
    inputs = stages_model.inputs(np.random.default_rng(1), 1, 5)
    user = {name: inputs[name] for name in stages_model.DOMAINS["user"]}
    answer = counted.predict(user, signature_name=LATE)
    assert {name: value.shape for name, value in answer.items()} == {"score": (0,), "tag": (0,)}
    assert count(counted, "states_computed", "user") == 1
    counted.predict(inputs, signature_name=LATE)
    assert count(counted, "states_computed", "user") == 1
    assert count(counted, "states_found", "user") == 1


def test_states_are_kept_only_if_no_served_signature_writes_what_they_read(
    serve: Callable[..., Stubs], tmp_path: Path
) -> None:
    """The export is told that nothing writes; tests/independence compares the scores."""
    impure.save(tmp_path / "saved", "written_variable")
    export_saved_model(
        tmp_path / "saved",
        tmp_path / "impure" / "1",
        user_features=["user_*"],
        late=True,
        unserved_signatures=["set"],
    )
    for flags, is_kept in (((), False), (("--unserved_signatures=set",), True)):
        stubs = serve(tmp_path / "impure", *flags)
        for _ in range(40):
            stubs.predict(impure.request(5), signature_name=LATE)
        assert (count(stubs, "states_found", "user") > 0) == is_kept
        logged = [line for line in stubs.server.log().splitlines() if f'"{stubs.model}"' in line]
        assert any('which signature "set" writes' in line for line in logged) != is_kept


def test_a_caller_does_not_wait_for_all_requests_of_another_one(
    serve: Callable[..., Stubs], tmp_path: Path
):
    """RequestQueueTest covers the order. Here, pipes block requests, so that others wait."""
    models.build("gated", tmp_path / "gated" / "1")
    gated = serve(tmp_path / "gated", *ONE_WORKER)
    held, *gates = [Gate(tmp_path / str(number)) for number in range(14)]

    def ask(gate: Gate) -> None:
        stubs = Stubs(gated.server.target, own_connection=True, model=gated.model)
        caller = (("x-colcast-caller", "another" if gate is gates[-1] else "one"),)
        request = stubs.request({"path": str(gate.path), "x": [1.0]})
        answer = stubs.prediction.Predict.future(request, timeout=120, metadata=caller)
        assert "Illegal seek" in answer.details()  # TensorFlow cannot read a pipe as a file
        stubs.channel.close()

    clients = []
    for number, gate in enumerate([held, *gates]):
        clients.append(threading.Thread(target=ask, args=(gate,)))
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


def test_a_new_version_under_load_mixes_neither_runs_nor_states_with_the_old_one(
    tmp_path: Path, serve: Callable[..., Stubs]
):
    base_path = tmp_path / "ranker"
    stages_model.save(base_path / "1", weight=1.0)
    stubs = serve(base_path, *ONE_WORKER)
    inputs = stages_model.inputs(np.random.default_rng(3), 1, 20)
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
    assert count(stubs, "states", "item") == 0
