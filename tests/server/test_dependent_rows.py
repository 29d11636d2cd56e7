"""Where rows depend on each other, a request is answered as if it were the only one, and whole."""

from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from ..models import dependent_model, stages_model
from .metrics_page import of_predicts
from .servers import Stubs

Inputs = dict[str, Any]
USER = np.ones(1, np.float32)
REQUESTS = 40
PARAMETERS = """
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
def _flags(base_path: Path) -> list[str]:
    (base_path.parent / "batching.config").write_text(PARAMETERS)
    parameters = f"--batching_parameters_file={base_path.parent}/batching.config"
    return ["--num_workers=4", "--enable_batching", parameters]


@pytest.fixture(scope="module", name="batching")
def _batching(serve: Any, base_path: Path, flags: list[str]) -> Stubs:
    return serve(base_path, *flags)


@pytest.fixture(scope="module", name="staged")
def _staged(tmp_path_factory: pytest.TempPathFactory, serve: Any, flags: list[str]) -> Stubs:
    """Of a model in stages, the last of which takes the candidates of one user."""
    base_path = tmp_path_factory.mktemp("staged")
    stages_model.save(base_path / "1", users_per_run="one", dependent="columnar_pair columnar_late")
    return serve(base_path, *flags)


def together(stubs: Stubs, signature: str, requests: list[Inputs], name: str) -> list[Any]:
    """An output of requests that are sent at once."""
    calls = [
        stubs.prediction.Predict.future(stubs.request(inputs, signature_name=signature), timeout=60)
        for inputs in requests
    ]
    return [np.array(call.result().outputs[name].float_val) for call in calls]


@pytest.mark.parametrize("signature", ["columnar", "columnar_late"])
def test_a_large_request_is_not_split(serve, base_path, batching, signature):
    """It would be: workers are idle, and nothing is known of its cost."""
    item = np.random.default_rng(1).random(4000, np.float32)
    expected = np.exp(item) / np.exp(item).sum()
    for stubs in (serve(base_path), batching):
        for _ in range(3):
            (share,) = together(stubs, signature, [{"user": USER, "item": item}], "share")
            np.testing.assert_allclose(share, expected, rtol=1e-4)
        assert of_predicts(stubs, "divided_requests", signature) == 0


def test_requests_do_not_run_together(batching):
    rows = np.random.default_rng(2).integers(1, 20, REQUESTS)
    requests = [{"user": USER, "item": np.arange(n, dtype=np.float32)} for n in rows]
    for signature in ("columnar", "columnar_late"):
        for share in together(batching, signature, requests, "share"):
            assert share.sum() == pytest.approx(1)
        assert of_predicts(batching, "joined_requests", signature) == 0


def test_lists_whose_greatest_length_counts_run_with_their_own_length(batching):
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
    assert of_predicts(batching, "joined_requests", "listed") > 0


def test_an_input_is_not_padded_for_another_that_is_named_as_its_length(batching):
    draw = np.random.default_rng(3)
    requests = [
        {"seen": draw.random((2, draw.integers(1, 7)), np.float32), "seen/length": np.array([0, 1])}
        for _ in range(REQUESTS)
    ]
    for inputs, mean in zip(requests, together(batching, "wide", requests, "mean"), strict=True):
        np.testing.assert_allclose(mean, inputs["seen"].mean(1) + inputs["seen/length"], rtol=1e-5)
    assert of_predicts(batching, "joined_requests", "wide") > 0


@pytest.mark.parametrize("signature", ["total", "best"])
def test_an_output_without_a_row_per_candidate_is_the_requests_own(batching, signature):
    draw = np.random.default_rng(4)
    requests = [
        {"item": draw.integers(0, 9, draw.integers(1, 9)).astype(np.float32)}
        for _ in range(REQUESTS)
    ]
    found = together(batching, signature, requests, signature)
    assert [value.tolist() for value in found] == [[inputs["item"].sum()] for inputs in requests]


def test_a_large_request_in_stages_is_not_split(staged):
    inputs = stages_model.inputs(np.random.default_rng(5), 1, 4000)
    for _ in range(6):
        staged.predict(inputs, signature_name="columnar_late")
    assert of_predicts(staged, "divided_requests", "columnar_late") == 0


def states_of(stubs: Any, inputs: Inputs) -> Inputs:
    """What the stages of users and items make of them."""
    states: Inputs = {}
    for domain in ("user", "item"):
        columns = {name: inputs[name] for name in stages_model.DOMAINS[domain]}
        states |= stubs.predict(columns, signature_name=f"columnar_{domain}")
    return states


def test_requests_to_the_last_stage_do_not_run_together(staged):
    requests, expected = [], []
    for seed in range(8):
        inputs = stages_model.inputs(np.random.default_rng(seed), 1, 3)
        expected.append(staged.predict(inputs, signature_name="columnar_late")["score"])
        rows = {"row_to_user": np.zeros(3, np.int64), "user_state/row": np.zeros(1, np.int64)}
        requests.append(states_of(staged, inputs) | rows | {"position": inputs["position"]})
    for _ in range(5):
        scores = together(staged, "columnar_pair", requests, "score")
        np.testing.assert_allclose(scores, expected, rtol=1e-5)
    assert of_predicts(staged, "joined_requests", "columnar_pair") == 0


def test_users_of_several_requests_are_refused_by_the_last_stage(staged):
    """As another server's batching would send them: rows are numbered from 0 twice."""
    inputs = stages_model.inputs(np.random.default_rng(1), 2, 2)
    sent: Inputs = {"row_to_user": np.zeros(2, np.int64), "position": inputs["position"]}
    sent |= states_of(staged, inputs)
    with pytest.raises(grpc.RpcError) as error:
        staged.predict(
            sent | {"user_state/row": np.zeros(2, np.int64)}, signature_name="columnar_pair"
        )
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
