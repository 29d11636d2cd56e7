"""Where rows depend on each other, a request is answered as if it were the only one, and whole."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.server import ServerProcess

from ..models import dependent_model, stages_model
from .metrics_page import Metrics

Inputs = dict[str, Any]
USER = np.ones(1, np.float32)
REQUESTS = 40
BATCHING = """
max_batch_size { value: 4096 }
batch_timeout_micros { value: 20000 }
max_enqueued_batches { value: 1000 }
num_batch_threads { value: 1 }
"""


@pytest.fixture(scope="module", name="base_path")
def _base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp("dependent")
    dependent_model.save(base_path / "1")
    return base_path


@pytest.fixture(scope="module", name="flags")
def _flags(base_path: Path, monitoring: list[str]) -> list[str]:
    (base_path.parent / "batching.config").write_text(BATCHING)
    parameters = f"--batching_parameters_file={base_path.parent}/batching.config"
    return [*monitoring, "--enable_batching", parameters]


@pytest.fixture(scope="module", name="batching")
def _batching(base_path: Path, flags: list[str]) -> Iterator[ServerProcess]:
    with ServerProcess("ranker", base_path, flags) as server:
        yield server


@pytest.fixture(scope="module", name="staged")
def _staged(tmp_path_factory: pytest.TempPathFactory, flags: list[str]) -> Iterator[ServerProcess]:
    """Of a model in stages, the last of which takes the candidates of one user."""
    base_path = tmp_path_factory.mktemp("staged")
    stages_model.save(base_path / "1", users_per_run="one", dependent="columnar_pair columnar_late")
    with ServerProcess("ranker", base_path, [*flags, "--num_workers=4"]) as server:
        yield server


@pytest.fixture(scope="module", name="default")
def _default(base_path: Path, monitoring: list[str]) -> Iterator[ServerProcess]:
    with ServerProcess("ranker", base_path, [*monitoring, "--num_workers=4"]) as server:
        yield server


@pytest.fixture(name="together")
def _together(connect: Any) -> Callable[..., list[Any]]:
    """An output of requests that are sent at once: together(server, signature, requests, name)."""

    def send(server: ServerProcess, signature: str, requests: list[Inputs], name: str) -> list[Any]:
        stubs = connect(server.target)
        calls = [
            stubs.prediction.Predict.future(
                stubs.request(inputs, signature_name=signature), timeout=60
            )
            for inputs in requests
        ]
        return [np.array(call.result().outputs[name].float_val) for call in calls]

    return send


def counted(server: ServerProcess, metric: str, signature: str) -> float:
    """A counter of Predict over gRPC."""
    return Metrics(server).value(
        f":colcast:{metric}",
        model_name="ranker",
        signature_name=signature,
        API="Predict",
        entrypoint="GRPC",
    )


@pytest.mark.parametrize("signature", ["columnar", "columnar_late"])
def test_a_large_request_is_not_split(default, batching, together, signature):
    """It would be: workers are idle, and nothing is known of its cost."""
    item = np.random.default_rng(1).random(4000, np.float32)
    expected = np.exp(item) / np.exp(item).sum()
    for server in (default, batching):
        for _ in range(3):
            (share,) = together(server, signature, [{"user": USER, "item": item}], "share")
            np.testing.assert_allclose(share, expected, rtol=1e-4)
        assert counted(server, "divided_requests", signature) == 0


def test_requests_do_not_run_together(batching, together):
    rows = np.random.default_rng(2).integers(1, 20, REQUESTS)
    requests = [{"user": USER, "item": np.arange(n, dtype=np.float32)} for n in rows]
    for signature in ("columnar", "columnar_late"):
        for share in together(batching, signature, requests, "share"):
            assert share.sum() == pytest.approx(1)
        assert counted(batching, "joined_requests", signature) == 0


def test_lists_whose_greatest_length_counts_run_with_their_own_length(batching, together):
    requests = []
    for seed in range(REQUESTS):
        draw = np.random.default_rng(seed)
        length = draw.integers(1, 4, draw.integers(1, 5))
        history = draw.random((len(length), 3), np.float32)  # of one width, so that all would fit
        requests.append({"history": history, "history/length": length})
    for inputs, mean in zip(requests, together(batching, "listed", requests, "mean"), strict=True):
        length, history = inputs["history/length"], inputs["history"]
        sums = [row[:n].sum() for row, n in zip(history, length, strict=True)]
        np.testing.assert_allclose(mean, np.array(sums) / length.max(), rtol=1e-5)
    assert counted(batching, "joined_requests", "listed") > 0


def test_an_input_is_not_padded_for_another_that_is_named_as_its_length(batching, together):
    draw = np.random.default_rng(3)
    requests = [
        {"seen": draw.random((2, draw.integers(1, 7)), np.float32), "seen/length": np.array([0, 1])}
        for _ in range(REQUESTS)
    ]
    for inputs, mean in zip(requests, together(batching, "wide", requests, "mean"), strict=True):
        np.testing.assert_allclose(mean, inputs["seen"].mean(1) + inputs["seen/length"], rtol=1e-5)
    assert counted(batching, "joined_requests", "wide") > 0


@pytest.mark.parametrize("signature", ["total", "best"])
def test_an_output_without_a_row_per_candidate_is_the_requests_own(batching, together, signature):
    draw = np.random.default_rng(4)
    requests = [
        {"item": draw.integers(0, 9, draw.integers(1, 9)).astype(np.float32)}
        for _ in range(REQUESTS)
    ]
    found = together(batching, signature, requests, signature)
    assert [value.tolist() for value in found] == [[inputs["item"].sum()] for inputs in requests]


def test_a_large_request_in_stages_is_not_split(staged, connect):
    inputs = stages_model.inputs(np.random.default_rng(5), 1, 4000)
    for _ in range(6):
        connect(staged.target).predict(inputs, signature_name="columnar_late")
    assert counted(staged, "divided_requests", "columnar_late") == 0


def states_of(stubs: Any, inputs: Inputs) -> Inputs:
    """What the stages of users and items make of them."""
    states: Inputs = {}
    for domain in ("user", "item"):
        columns = {name: inputs[name] for name in stages_model.DOMAINS[domain]}
        states |= stubs.predict(columns, signature_name=f"columnar_{domain}")
    return states


def test_requests_to_the_last_stage_do_not_run_together(staged, connect, together):
    stubs = connect(staged.target)
    requests, expected = [], []
    for seed in range(8):
        inputs = stages_model.inputs(np.random.default_rng(seed), 1, 3)
        expected.append(stubs.predict(inputs, signature_name="columnar_late")["score"])
        rows = {"row_to_user": np.zeros(3, np.int64), "user_state/row": np.zeros(1, np.int64)}
        requests.append(states_of(stubs, inputs) | rows | {"position": inputs["position"]})
    for _ in range(5):
        scores = together(staged, "columnar_pair", requests, "score")
        np.testing.assert_allclose(scores, expected, rtol=1e-5)
    assert counted(staged, "joined_requests", "columnar_pair") == 0


def test_users_of_several_requests_are_refused_by_the_last_stage(staged, connect):
    """As another server's batching would send them: rows are numbered from 0 twice."""
    inputs = stages_model.inputs(np.random.default_rng(1), 2, 2)
    stubs = connect(staged.target)
    sent: Inputs = {"row_to_user": np.zeros(2, np.int64), "position": inputs["position"]}
    sent |= states_of(stubs, inputs)
    with pytest.raises(grpc.RpcError) as error:
        stubs.predict(
            sent | {"user_state/row": np.zeros(2, np.int64)}, signature_name="columnar_pair"
        )
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
