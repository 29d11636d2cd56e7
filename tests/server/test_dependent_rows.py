"""Requests whose rows depend on each other run alone; those with indices are joined and split."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from ..models import dependent_model, stages_model
from ..waiting import wait_until
from .metrics_page import Metrics, of_predicts, states_computed
from .servers import NOTHING_KEPT, ONE_WORKER, STATES_OFF, WHOLE_AND_ALONE, Stubs, held_worker
from .test_domains import INDEXED, request_of

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
    """Stubs of a model with stages, whose last stage scores one user's candidates per run."""
    base_path = tmp_path_factory.mktemp("staged")
    stages_model.save(base_path / "1", users_per_run="one", dependent="columnar_pair columnar_late")
    return serve(base_path, *flags)


def together(stubs: Stubs, signature: str, requests: list[Inputs], name: str) -> list[Any]:
    """Sends requests at the same time; returns one output of each."""
    calls = [
        stubs.prediction.Predict.future(stubs.request(inputs, signature_name=signature), timeout=60)
        for inputs in requests
    ]
    return [np.array(call.result().outputs[name].float_val) for call in calls]


@pytest.mark.parametrize("signature", ["columnar", "columnar_late"])
def test_a_large_request_is_not_split(serve, base_path, batching, signature):
    """If its rows were independent, the request would be split, because workers are idle."""
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


def test_lists_whose_greatest_length_matters_run_with_their_own_length(batching):
    requests = []
    for seed in range(REQUESTS):
        draw = np.random.default_rng(seed)
        length = draw.integers(1, 4, draw.integers(1, 5))
        # lists of equal width may run together
        history = draw.random((len(length), 3), np.float32)
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


def states_of(stubs: Any, inputs: Inputs) -> Inputs:
    """The states of the request's users and items, from their stages."""
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


Code = grpc.StatusCode
Columns = dict[str, Any]
LATE = "columnar_late"
SLICE = 100  # rows
SPLITTING = f"""
enable_large_batch_splitting {{ value: true }}
max_batch_size {{ value: 4096 }}
max_execution_batch_size {{ value: {SLICE} }}
"""


@pytest.fixture(scope="module", name="alone")
def _alone(serve: Callable[..., Stubs], shops_path: Path) -> Stubs:
    return serve(shops_path, *WHOLE_AND_ALONE)


@pytest.fixture(scope="module", name="together", params=[ONE_WORKER, NOTHING_KEPT])
def _together(
    request: pytest.FixtureRequest, serve: Callable[..., Stubs], shops_path: Path
) -> Stubs:
    """Stubs of a server with one worker, so requests that arrive during a run wait."""
    return serve(shops_path, *request.param)


@pytest.fixture(scope="module", name="slices", params=[(), STATES_OFF])
def _slices(
    request: pytest.FixtureRequest,
    serve: Callable[..., Stubs],
    shops_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Stubs:
    """Stubs of a server that splits every request of more than SLICE rows, however busy it is."""
    file = tmp_path_factory.mktemp("slices") / "batching.config"
    file.write_text(SPLITTING)
    flags = ["--enable_batching", f"--batching_parameters_file={file}"]
    flags += ["--num_workers=4", f"--max_expanded_bytes={64 << 20}"]
    return serve(shops_path, *flags, *request.param)


def drawn(seed: int, most: int = 25) -> tuple[Columns, int]:
    """A random request, with indices for some domains or for none, and its number of candidates."""
    draw = random.Random(seed)
    count = draw.randint(1, most)
    rows = {domain: draw.randint(1, 6) for domain in INDEXED if draw.random() < 0.4}
    columns = request_of(np.random.default_rng(seed), rows, count)
    for name in list(columns):
        domain = name.partition("_")[0]
        if domain in rows and draw.random() < 0.2:  # one row stands for all rows of its domain
            lengths = name.removesuffix("/length")
            for column in (lengths, f"{lengths}/length"):
                if column in columns and rows[domain] > 1:
                    columns[column] = columns[column][:1]
        elif domain in ("shop", "campaign") and domain not in rows and seed % 3 == 0:
            columns[name] = columns[name][:1]  # one row for all candidates, without an index
    return columns, count


def wrong(columns: Columns, kind: int) -> Columns:
    """The request, with an error of one of five kinds."""
    indices = [name for name in columns if name.startswith("row_to_")]
    if kind == 0 or not indices:
        return {name: column for name, column in columns.items() if name != "user_id_0"}
    index = columns[indices[0]].copy()
    if kind == 1:
        index[-1] = 1000
    if kind == 2:
        index[0] = -1
    if kind == 3:
        return columns | {indices[0]: index.astype(np.int32)}
    if kind == 4:
        return columns | {indices[0]: np.concatenate([index, index, index])}
    return columns | {indices[0]: index}


def test_with_wrong_ones_among_them_each_is_answered_as_alone(
    alone: Stubs, together: Stubs
) -> None:
    spec = {"signature_name": LATE}
    requests = []
    for seed in range(120):
        columns, _ = drawn(seed)
        requests.append(wrong(columns, seed % 7) if seed % 9 == 4 else columns)
    before = of_predicts(together, "joined_requests", LATE)
    answers = []
    for columns in requests:
        try:
            answers.append(alone.predict(columns, **spec)["score"])
        except grpc.RpcError as error:
            details = error.details().replace(alone.model, together.model)
            answers.append((error.code(), details))
    assert sum(isinstance(answer, tuple) for answer in answers) >= 10
    for _ in range(3):
        calls = [
            together.prediction.Predict.future(together.request(columns, **spec), timeout=60)
            for columns in requests
        ]
        for seed, (call, expected) in enumerate(zip(calls, answers, strict=True)):
            if isinstance(expected, tuple):
                assert (call.code(), call.details()) == expected, seed
                continue
            assert call.code() is Code.OK, (seed, call.details())
            got = np.array(call.result().outputs["score"].float_val)
            np.testing.assert_allclose(got, expected.ravel(), rtol=2e-5, err_msg=str(seed))
    assert of_predicts(together, "joined_requests", LATE) > before


def test_shared_rows_of_a_run_are_computed_once(
    serve: Callable[..., Stubs], shops_path: Path, tmp_path: Path
) -> None:
    """The requests differ in users and items, but have the same shops and campaigns."""
    base = request_of(np.random.default_rng(1), {"shop": 4, "campaign": 3}, 20)
    requests = []
    for seed in range(40):
        own = request_of(np.random.default_rng(100 + seed), {"shop": 4, "campaign": 3}, 20)
        shared = {n: c for n, c in base.items() if n.startswith(("shop_", "campaign_"))}
        requests.append(own | shared)
    stubs = serve(shops_path, *NOTHING_KEPT)
    with held_worker(tmp_path, serve, *NOTHING_KEPT) as (_, gate):
        calls = [
            stubs.prediction.Predict.future(stubs.request(columns, signature_name=LATE), timeout=60)
            for columns in requests
        ]
        wait_until(lambda: Metrics(stubs.server).value(":colcast:queue_length") == len(requests))
        gate.open()
        assert all(call.code() is Code.OK for call in calls)
    assert of_predicts(stubs, "joined_requests", LATE) > 0
    assert states_computed(stubs, "shop") < 4 * len(requests)


def test_by_slices_each_is_answered_as_whole(slices: Stubs, alone: Stubs) -> None:
    """A request with an index of items, shops or campaigns is not split."""
    spec = {"signature_name": LATE}
    for seed in range(40):
        columns, count = drawn(seed, most=1000)
        indices = {name for name in columns if name.startswith("row_to_")}
        split = count > SLICE and indices <= {"row_to_user"}
        before = of_predicts(slices, "divided_requests", LATE)
        got = slices.predict(columns, **spec)["score"]
        assert of_predicts(slices, "divided_requests", LATE) == before + split, seed
        expected = alone.predict(columns, **spec)["score"]
        np.testing.assert_allclose(got, expected, rtol=2e-5, err_msg=str(seed))


def test_a_long_string_that_every_candidate_reads_is_refused_before_it_is_repeated(
    slices: Stubs,
) -> None:
    columns = request_of(np.random.default_rng(1), {"shop": 100}, 2000)
    name = next(n for n, c in columns.items() if n.startswith("shop_") and c.dtype == object)
    columns[name] = np.array([b"x" * 300_000] + [b""] * 99, object)
    columns["row_to_shop"] = np.zeros(2000, np.int64)
    with pytest.raises(grpc.RpcError) as refused:
        slices.predict(columns, signature_name="columnar")
    assert refused.value.code() is Code.RESOURCE_EXHAUSTED
    assert "max_expanded_bytes is" in refused.value.details()
    good = request_of(np.random.default_rng(1), {"shop": 4}, 20)
    assert len(slices.predict(good, signature_name="columnar")["score"]) == 20
