"""Shadow versions: another version also runs a share of live requests, and answers are compared."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess

from .. import models
from ..models import stages_model
from ..models.impure import Gate
from ..models.saving import save_version
from .metrics_page import Metrics, status

LIVE, SHADOW = 1, 2
QUEUED = 16  # the most requests that the shadow queue holds
CANDIDATES = np.linspace(-1, 1, 12, dtype=np.float32)


class Scorer(tf.Module):
    """A model of score = weight * x."""

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__()
        self.weight = tf.Variable(weight)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def score(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"score": self.weight * x}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def fail(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.control_dependencies([tf.debugging.assert_less(x, -9.0, "no such x")]):
            return {"score": self.weight * tf.identity(x)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def score_each(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"score": tf.expand_dims(self.weight * x, 1)}


def save(base_path: Path, live: Any, shadow: Any) -> None:
    """Saves two versions of a model, each given as a module and its signatures."""
    for version, (module, signatures) in ((LIVE, live), (SHADOW, shadow)):
        save_version(base_path / str(version), module, signatures)


def configured(folder: Path, *models: str) -> list[str]:
    """Flags that serve both versions of these models; version 2 has the label `next`."""
    config = folder / "models.config"
    config.write_text(
        "model_config_list {"
        + "".join(
            f"""config {{ name: "{name}" base_path: "{folder / name}" model_platform: "tensorflow"
            model_version_policy {{ specific {{ versions: {LIVE} versions: {SHADOW} }} }}
            version_labels {{ key: "next" value: {SHADOW} }} }}\n"""
            for name in models
        )
        + "}"
    )
    return [f"--model_config_file={config}", "--allow_version_labels_for_unavailable_models"]


def shadow_labels(model: str, **more: str) -> dict[str, str]:
    labels = {"live_version": str(LIVE), "shadow_version": str(SHADOW)}
    return {"model_name": model, **labels, **more}


def shadowed(server: ServerProcess, model: str, outcome: str) -> float:
    labels = shadow_labels(model, outcome=outcome)
    return Metrics(server).value(":colcast:shadow_requests", **labels)


def not_run(server: ServerProcess, model: str, reason: str) -> float:
    return Metrics(server).value(":colcast:shadow_not_run", model_name=model, reason=reason)


@pytest.fixture(scope="module")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has a base path for each fault of version 2."""
    folder = tmp_path_factory.mktemp("shadow")
    live, changed = Scorer(), Scorer(-1.0)
    whole = (live, live.score)
    save(folder / "same", whole, whole)
    save(folder / "changed", whole, (changed, changed.score))
    save(folder / "renamed", whole, (live, {"other": live.score}))
    save(folder / "failing", whole, (live, live.fail))
    save(folder / "reshaped", whole, (live, live.score_each))
    save(folder / "absent", whole, whole)
    for version in (LIVE, SHADOW):
        models.build("gated", folder / "stuck" / str(version), waits=version == SHADOW)
        stages_model.save(folder / "ranker" / str(version))
    return folder


MODELS = ("same", "changed", "renamed", "failing", "reshaped", "stuck", "ranker", "absent")
VERSIONS = {"changed": "next", "absent": 77}  # shadow versions other than 2


@pytest.fixture(scope="module")
def server(
    base_path: Path, monitoring: list[str], connect: Callable[..., Any], wait_until: Any
) -> Iterator[ServerProcess]:
    shadows = ",".join(f"{name}:{VERSIONS.get(name, SHADOW)}:1" for name in MODELS)
    flags = [*configured(base_path, *MODELS), f"--shadow_model_version={shadows}", *monitoring]
    with ServerProcess(flags=flags) as process:
        # The server is ready with one version of each model, so wait for both.
        wait_until(lambda: process.log().count(": serving, loaded in") == 2 * len(MODELS))
        yield process


@pytest.fixture(scope="module")
def stubs(server: ServerProcess, connect: Callable[..., Any]) -> Any:
    return connect(server.target)


def live_scores(stubs: Any, model: str, x: np.ndarray = CANDIDATES) -> np.ndarray:
    scores: np.ndarray = stubs.predict({"x": x}, name=model, version=LIVE)["score"]
    return scores


def test_the_same_model_shows_no_drift(server, stubs, wait_until):
    for number in range(5):
        x = CANDIDATES + number
        np.testing.assert_array_equal(live_scores(stubs, "same", x), x)
        wait_until(lambda wanted=number + 1: shadowed(server, "same", "compared") == wanted)
    metrics = Metrics(server)
    labels = shadow_labels("same", output="score")
    assert metrics.value(":colcast:shadow_largest_difference", **labels) == 0
    assert metrics.value(":colcast:shadow_difference_bucket", **labels, le="0") == 5
    assert metrics.value(":colcast:shadow_difference_count", **labels) == 5
    assert metrics.value(":colcast:shadow_ranked", **labels, top_10="same") == 5
    assert metrics.value(":colcast:shadow_ranked", **labels, top_10="other") == 0


def test_a_changed_weight_is_seen_and_does_not_reach_the_answer(server, stubs, wait_until):
    np.testing.assert_array_equal(live_scores(stubs, "changed"), CANDIDATES)
    wait_until(lambda: shadowed(server, "changed", "compared") == 1)
    metrics = Metrics(server)
    labels = shadow_labels("changed", output="score")
    assert metrics.value(":colcast:shadow_largest_difference", **labels) == 2
    assert metrics.value(":colcast:shadow_difference_bucket", **labels, le="1") == 0
    assert metrics.value(":colcast:shadow_difference_bucket", **labels, le="10") == 1
    assert metrics.value(":colcast:shadow_ranked", **labels, top_10="other") == 1


@pytest.mark.parametrize(
    ("model", "outcome"),
    [("renamed", "failed"), ("failing", "failed"), ("reshaped", "other_form")],
)
def test_a_broken_shadow_is_counted_and_harms_nothing(server, stubs, wait_until, model, outcome):
    for number in range(3):
        np.testing.assert_array_equal(live_scores(stubs, model), CANDIDATES)
        wait_until(lambda wanted=number + 1: shadowed(server, model, outcome) == wanted)
    assert shadowed(server, model, "compared") == 0
    assert server.log().count("shadow version 2 of model") <= 1


def test_requests_over_rest_are_shadowed(server, wait_until):
    before = shadowed(server, "same", "compared")
    url = f"http://{server.rest_target}/v1/models/same/versions/{LIVE}:predict"
    body = json.dumps({"instances": [1.5, 2.5]}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=120) as answer:
        assert json.load(answer) == {"predictions": [1.5, 2.5]}
    wait_until(lambda: shadowed(server, "same", "compared") == before + 1)


def test_answers_made_by_the_shadow_itself_are_not_compared(server, stubs):
    stubs.predict({"x": CANDIDATES}, name="changed", version=SHADOW)
    metrics = Metrics(server)
    of_changed = [
        sample.labels["live_version"]
        for sample in metrics.samples
        if sample.name == ":colcast:shadow_requests_total"
        and sample.labels["model_name"] == "changed"
    ]
    assert set(of_changed) <= {str(LIVE)}


def test_status_json_has_the_drift(server, stubs, wait_until):
    live_scores(stubs, "changed")
    wait_until(lambda: shadowed(server, "changed", "compared") > 0)
    versions = status(server)["shadows"]["versions"]
    (outputs,) = (one["outputs"] for one in versions if one["model"] == "changed")
    score = next(one for one in outputs if one["output"] == "score")
    assert score["largest_difference"] == 2
    assert (score["same_top_10"], score["other_top_10"] > 0) == (0, True)


def test_a_stuck_shadow_holds_no_live_request_and_a_few_only_wait_for_it(
    server, stubs, tmp_path, wait_until
):
    gate, file = Gate(tmp_path / "gate"), tmp_path / "file"
    file.write_bytes(b"")

    def answer(path: Path) -> None:
        inputs = {"path": str(path), "x": CANDIDATES}
        scores = stubs.predict(inputs, name="stuck", version=LIVE)["score"]
        np.testing.assert_array_equal(scores, CANDIDATES)

    answer(gate.path)
    wait_until(gate.is_reached)
    for _ in range(QUEUED + 5):
        answer(file)
    assert not_run(server, "stuck", "queue_full") == 5
    gate.open()
    wait_until(
        lambda: shadowed(server, "stuck", "compared") + not_run(server, "stuck", "busy") == QUEUED
    )
    assert shadowed(server, "stuck", "failed") == 1


def test_a_busy_server_drops_them(base_path, monitoring, connect, tmp_path, wait_until):
    """The only worker runs a live request and then another one that keeps it busy."""
    for version in (LIVE, SHADOW):
        models.build("gated", tmp_path / "gated" / str(version))
    (tmp_path / "same").symlink_to(base_path / "same")
    flags = [*configured(tmp_path, "gated", "same"), "--num_workers=1"]
    flags += ["--shadow_model_version=same:2:1", *monitoring]
    gates = [Gate(tmp_path / f"gate{i}") for i in range(2)]
    with ServerProcess(flags=flags) as server, ThreadPoolExecutor(3) as clients:
        wait_until(lambda: server.log().count(": serving, loaded in") == 4)
        stubs = connect(server.target)

        def wait_at(gate: Gate) -> Any:
            return stubs.predict({"path": str(gate.path), "x": CANDIDATES}, name="gated")

        def queued() -> float:
            return Metrics(server).value(":colcast:queue_length")

        first = clients.submit(wait_at, gates[0])
        wait_until(gates[0].is_reached)
        live = clients.submit(live_scores, stubs, "same")
        wait_until(lambda: queued() == 1)
        second = clients.submit(wait_at, gates[1])
        wait_until(lambda: queued() == 2)
        gates[0].open()
        np.testing.assert_array_equal(live.result(120), CANDIDATES)
        wait_until(lambda: not_run(server, "same", "busy") == 1)
        gates[1].open()
        assert first.exception(120) is not None
        assert second.exception(120) is not None
        assert shadowed(server, "same", "compared") == 0


def test_the_live_versions_states_stay_and_the_shadow_keeps_none(server, stubs, wait_until):
    inputs = stages_model.inputs(np.random.default_rng(7), 1, 12)
    for number in range(4):
        stubs.predict(inputs, signature_name="columnar_late", version=LIVE)
        wait_until(lambda wanted=number + 1: shadowed(server, "ranker", "compared") == wanted)
    metrics = Metrics(server)
    states = {str(LIVE): 0.0, str(SHADOW): 0.0}
    for sample in metrics.samples:
        if sample.name == ":colcast:states" and sample.labels["model_name"] == "ranker":
            states[sample.labels["version"]] += sample.value
    assert states[str(LIVE)] > 0
    assert states[str(SHADOW)] == 0
    labels = shadow_labels("ranker", output="score")
    assert metrics.value(":colcast:shadow_largest_difference", **labels) < 1e-4


def test_a_shadow_version_that_is_not_loaded_is_counted(server, stubs):
    live_scores(stubs, "absent")
    assert not_run(server, "absent", "not_served") == 1
