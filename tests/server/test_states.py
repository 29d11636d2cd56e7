"""Which program answers a request, and what state caches keep of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import export_saved_model
from colcast.zoo.saving import with_record

from ..models import impure, stages_model
from ..models.saving import save_graph
from .metrics_page import Metrics
from .servers import ONE_WORKER, Stubs

v1 = tf.compat.v1
MIB = 1 << 20
LATE = "columnar_late"


def count(stubs: Stubs, what: str, store: str) -> float:
    """The value of a counter or gauge of a state cache."""
    labels = {"model_name": stubs.model, "version": "1", "signature_name": LATE}
    return Metrics(stubs.server).value(f":colcast:{what}", store=store, **labels)


@pytest.fixture(name="counted")
def _counted(serve: Callable[..., Stubs], stages_path: Path) -> Stubs:
    """A model that only this test uses, on a server that does not split requests."""
    return serve(stages_path, *ONE_WORKER)


def programs(stubs: Stubs) -> dict[tuple[str, str], float]:
    """The number of runs of columnar_late, by program and outcome."""
    return {
        (sample.labels["program"], sample.labels["outcome"]): sample.value
        for sample in Metrics(stubs.server).samples
        if sample.name == ":colcast:program_total"
        and sample.labels["model_name"] == stubs.model
        and sample.labels["signature_name"] == LATE
    }


def test_a_program_that_fails_is_counted_and_logged_once(
    tmp_path: Path, serve: Callable[..., Stubs], counted: Stubs
) -> None:
    """Another program then answers, so only metrics show that each request runs twice."""
    stages_model.save(tmp_path / "1", fails=True)
    inputs = stages_model.inputs(np.random.default_rng(1), 1, 8)
    failing = serve(tmp_path)
    scores = [failing.predict(inputs, signature_name=LATE)["score"] for _ in range(3)]
    expected = counted.predict(inputs, signature_name=LATE)["score"]
    np.testing.assert_allclose(scores, [expected] * 3, rtol=1e-5)
    assert programs(failing) == {("stages", "failed"): 3, ("whole", "ok"): 3}
    assert programs(counted).keys() == {("stages", "ok")}
    line = f'version 1: signature "{LATE}": program "stages" failed for the first time'
    assert failing.server.log().count(line) == 1


def test_a_request_without_candidates_computes_the_user_in_advance(counted: Stubs) -> None:
    inputs = stages_model.inputs(np.random.default_rng(1), 1, 5)
    user = {name: inputs[name] for name in stages_model.DOMAINS["user"]}
    answer = counted.predict(user, signature_name=LATE)
    assert {name: value.shape for name, value in answer.items()} == {"score": (0,), "tag": (0,)}
    assert count(counted, "states_computed", "user") == 1
    counted.predict(inputs, signature_name=LATE)
    assert count(counted, "states_computed", "user") == 1
    assert count(counted, "states_found", "user") == 1


def test_memory_stays_within_the_flag_and_a_tenth(
    serve: Callable[..., Stubs], stages_path: Path
) -> None:
    flag = 64 * MIB
    stubs = serve(stages_path, f"--item_state_bytes={flag}")

    def rank_new(first: int, requests: int) -> None:
        for n in range(first, first + requests):
            inputs = stages_model.inputs(np.random.default_rng(5), 1, 500)
            # Half of the items repeat soon, so looking them up stays worthwhile.
            inputs["id"] = np.arange(500) + 250 * n
            inputs["title"] = np.array([f"title {i}" for i in inputs["id"]], object)
            inputs["shape"][:] = 1
            stubs.predict(inputs, signature_name=LATE)

    rank_new(0, 4)  # allocates the memory that requests need
    before = Metrics(stubs.server).value("process_resident_memory_bytes")
    rank_new(4, 600)
    after = Metrics(stubs.server).value("process_resident_memory_bytes")
    assert count(stubs, "states_evicted", "item") > 50_000
    assert 0.8 * flag < count(stubs, "state_bytes", "item") <= flag
    assert after - before <= 1.1 * flag


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


EXACT = 0.5


def save_exact(directory: Path, recorded: bool) -> None:
    """Saves score = 100 user + item; the exact signature adds 0.5, to show which one ran."""
    with tf.Graph().as_default(), v1.Session() as session:

        def signature(prefix: str, user_shape: list[int | None], more: float) -> Any:
            user = v1.placeholder(tf.float32, user_shape, f"{prefix}user")
            item = v1.placeholder(tf.float32, [None], f"{prefix}item")
            score = 100.0 * user + item + more
            return v1.saved_model.predict_signature_def(
                {"user": user, "item": item}, {"score": score, "user": 2 * user}
            )

        exact = signature("columnar_exact/inputs/", [1], EXACT)
        signatures = {"columnar": signature("", [None], 0.0), "columnar_exact": exact}
        save_graph(directory, session, signatures)
    if recorded:
        with_record(directory, {"columnar": {"source_input": None}})


@pytest.mark.parametrize("recorded", [True, False])
def test_the_user_sent_once_is_run_by_the_exact_signature_if_it_is_recorded(
    tmp_path: Path, serve: Callable[..., Stubs], recorded: bool
) -> None:
    save_exact(tmp_path / "1", recorded)
    inputs = {"user": [2.0], "item": [1.0, 2.0, 3.0]}
    scores = serve(tmp_path).predict(inputs, signature_name="columnar")["score"]
    assert scores.tolist() == [score + EXACT * recorded for score in (201, 202, 203)]
