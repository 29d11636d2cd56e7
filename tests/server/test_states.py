"""State caches keep scores the same, compute each user and item once, and bound memory."""

import concurrent.futures
import json
import threading
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from ..models import stages_model
from .metrics_page import Metrics
from .servers import NOTHING_KEPT, ONE_WORKER, Stubs

MIB = 1 << 20


class Ranker:
    """A served model that has stages, with the metrics from before the test."""

    def __init__(self, stubs: Stubs) -> None:
        self.stubs = stubs
        self.server = stubs.server
        self._before = Metrics(self.server)

    def rank(
        self,
        inputs: dict[str, Any],
        signature: str = "columnar_late",
        outputs: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Calls a signature; returns the outputs."""
        return self.stubs.predict(  # type: ignore[no-any-return]
            inputs, signature_name=signature, output_filter=outputs
        )

    def count(self, what: str, store: str, version: str = "1") -> float:
        """The value of a counter or gauge of a state cache."""
        return self._value(Metrics(self.server), what, store, version)

    def grown(self, what: str, store: str) -> float:
        """How much a counter has grown since this object was made."""
        return self.count(what, store) - self._value(self._before, what, store, "1")

    def _value(self, page: Metrics, what: str, store: str, version: str) -> float:
        labels = {"model_name": self.stubs.model, "version": version}
        labels["signature_name"] = "columnar_late"
        return page.value(f":colcast:{what}", store=store, **labels)


def test_a_program_that_fails_is_counted_and_logged_once(
    tmp_path: Path, serve: Callable[..., Ranker], counted: Ranker
) -> None:
    """Another program then answers, so only metrics show that each request runs twice."""
    stages_model.save(tmp_path / "1", fails=True)
    inputs = stages_model.inputs(np.random.default_rng(1), 1, 8)
    ranker = serve(tmp_path)
    scores = [ranker.rank(inputs)["score"] for _ in range(3)]
    expected = counted.rank(inputs)["score"]
    np.testing.assert_allclose(scores, [expected] * 3, rtol=1e-5)
    assert programs(ranker) == {("stages", "failed"): 3, ("whole", "ok"): 3}
    assert programs(counted).keys() == {("stages", "ok")}
    line = 'version 1: signature "columnar_late": program "stages" failed for the first time'
    assert ranker.server.log().count(line) == 1


def programs(ranker: Ranker) -> dict[tuple[str, str], float]:
    """The number of runs of columnar_late, by program and outcome."""
    return {
        (sample.labels["program"], sample.labels["outcome"]): sample.value
        for sample in Metrics(ranker.server).samples
        if sample.name == ":colcast:program_total"
        and sample.labels["model_name"] == ranker.stubs.model
        and sample.labels["signature_name"] == "columnar_late"
    }


@pytest.fixture(name="serve", scope="module")
def _serve(serve: Callable[..., Stubs]) -> Callable[..., Ranker]:
    return lambda base_path, *flags: Ranker(serve(base_path, *flags))


@pytest.fixture(scope="module", name="without_states")
def _without_states(serve: Callable[..., Ranker], stages_path: Path) -> Ranker:
    return serve(stages_path, *NOTHING_KEPT)


@pytest.fixture(name="counted")
def _counted(serve: Callable[..., Ranker], stages_path: Path) -> Ranker:
    """A model that only this test uses, on a server that does not split requests."""
    return serve(stages_path, *ONE_WORKER)


@pytest.fixture(name="busy")
def _busy(serve: Callable[..., Ranker], stages_path: Path) -> Ranker:
    return serve(stages_path, "--num_workers=64")


def own_inputs(number: int, items: int) -> dict[str, Any]:
    """A user and items that no other number has."""
    inputs = stages_model.inputs(np.random.default_rng(number), 1, items)
    return inputs | {"age": np.array([1000 + number]), "id": 1000 * number + np.arange(items)}


def expect_equal(got: dict[str, Any], expected: dict[str, Any]) -> None:
    assert got.keys() == expected.keys()
    if "tag" in expected:
        np.testing.assert_array_equal(got["tag"], expected["tag"])
    if "score" in expected:
        np.testing.assert_allclose(got["score"], expected["score"], rtol=1e-5, atol=1e-6)


def test_a_string_sent_once_over_rest_stays_with_its_request(counted):
    ranker, inputs = counted, own_inputs(3, 3)
    for title in ("red", "blue", "red"):
        columns = {name: value.tolist() for name, value in inputs.items()} | {"title": [title]}
        body = {"signature_name": "columnar_late", "inputs": columns}
        url = f"http://{ranker.server.rest_target}/v1/models/{ranker.stubs.model}:predict"
        with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=120) as response:
            answer = json.load(response)["outputs"]
        assert answer["tag"] == 3 * [title.upper()]


def test_ten_requests_with_the_same_new_items_compute_them_once(busy):
    ranker, inputs = busy, own_inputs(6, 200)
    together = threading.Barrier(10)

    def rank(number: int) -> Any:
        together.wait()
        order = np.roll(np.arange(200), 20 * number)
        request = {k: v[order] if len(v) == 200 else v for k, v in inputs.items()}
        return np.roll(ranker.rank(request)["score"], -20 * number).tolist()

    with concurrent.futures.ThreadPoolExecutor(10) as threads:
        scores = list(threads.map(rank, range(10)))
    assert all(score == pytest.approx(scores[0], rel=1e-5) for score in scores)
    assert ranker.grown("states_computed", "item") == 200
    assert ranker.grown("states_found", "item") == 1800


def test_a_new_version_under_load_never_answers_from_the_old_ones_states(
    serve, tmp_path, wait_until
):
    stages_model.save(tmp_path / "1", weight=1.0)
    ranker = serve(tmp_path)
    inputs = stages_model.inputs(np.random.default_rng(4), 1, 20)
    inputs["position"][:] = 0
    old = ranker.rank(inputs)["score"]
    wrong: list[Any] = []
    versions: set[int] = set()
    stop = threading.Event()

    def load() -> None:
        while not stop.is_set():
            request = ranker.stubs.request(inputs, signature_name="columnar_late")
            try:
                response = ranker.stubs.prediction.Predict(request, timeout=120)
            except grpc.RpcError as error:
                wrong.append(error)
                return
            version = response.model_spec.version.value
            versions.add(version)
            score = np.array(response.outputs["score"].float_val)
            if not np.allclose(score, old * version, rtol=1e-5):
                wrong.append((version, score))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    stages_model.save(tmp_path / "2.tmp", weight=2.0)
    (tmp_path / "2.tmp").rename(tmp_path / "2")
    wait_until(lambda: 2 in versions or wrong)
    wait_until(lambda: ranker.stubs.states()[1][0] == "END" or wrong)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert versions == {1, 2}
    assert ranker.count("states", "item", version="1") == 0


def test_memory_stays_within_the_flag_and_a_tenth(serve, stages_path):
    flag = 64 * MIB
    ranker = serve(stages_path, f"--item_state_bytes={flag}")

    def rank_new(first: int, requests: int) -> None:
        for n in range(first, first + requests):
            inputs = stages_model.inputs(np.random.default_rng(5), 1, 500)
            # Half of the items repeat soon, so looking them up stays worthwhile.
            inputs["id"] = np.arange(500) + 250 * n
            inputs["title"] = np.array([f"title {i}" for i in inputs["id"]], object)
            inputs["shape"][:] = 1
            ranker.rank(inputs)

    rank_new(0, 4)  # allocates the memory that requests need
    before = Metrics(ranker.server).value("process_resident_memory_bytes")
    rank_new(4, 600)
    after = Metrics(ranker.server).value("process_resident_memory_bytes")
    assert ranker.count("states_evicted", "item") > 50_000
    assert 0.8 * flag < ranker.count("state_bytes", "item") <= flag
    assert after - before <= 1.1 * flag


def test_rows_that_never_repeat_are_soon_ignored(serve, stages_path, without_states):
    ranker = serve(stages_path)

    def new(n: int) -> dict[str, Any]:
        inputs = stages_model.inputs(np.random.default_rng(n), 1, 500)
        inputs["id"] = np.arange(500) + 500 * n
        inputs["age"] = np.array([100 + n])
        return inputs

    for n in range(400):
        ranker.rank(new(n))
    assert ranker.count("states_not_looked_for", "item") > 100_000
    for _ in range(40):
        expect_equal(ranker.rank(new(1000)), without_states.rank(new(1000)))
    assert ranker.count("states_found", "item") >= 500, "tried again now and then"


class TestPrefetch:
    """Requests without candidates."""

    @pytest.mark.parametrize("absent", [True, False])
    def test_the_user_is_known_when_the_candidates_come(self, counted, absent):
        ranker, inputs = counted, own_inputs(10 + absent, 5)
        users = {name: inputs[name] for name in ("age", "city", "history")}
        nothing = {} if absent else {n: v[:0] for n, v in inputs.items() if n not in users}
        for name in nothing:
            if nothing[name].dtype == object:
                nothing[name] = np.array([], dtype="S1")
        answer = ranker.rank(users | nothing)
        assert {name: value.shape for name, value in answer.items()} == {
            "score": (0,),
            "tag": (0,),
        }
        assert ranker.grown("states_computed", "user") == 1
        ranker.rank(inputs)
        assert ranker.grown("states_computed", "user") == 1
        assert ranker.grown("states_found", "user") == 1
