"""Rows that depend on each other, or on the longest list of their request.

Requests whose rows depend on each other run alone; a list's longest length is part of what rows may
share: states, joined requests and slices.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from ..models import dependent_model, lists_model
from .metrics_page import Metrics, of_predicts, until_joined
from .servers import BATCHING, NOTHING_KEPT, ONE_WORKER, Stubs

Inputs = dict[str, Any]
LATE = "columnar_late"
SIGNATURES = ("columnar", LATE)
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


def together(stubs: Stubs, signature: str, requests: list[Inputs], name: str) -> list[Any]:
    """Sends requests at the same time; returns one output of each."""
    calls = [
        stubs.prediction.Predict.future(
            stubs.request(inputs, signature_name=signature), timeout=120
        )
        for inputs in requests
    ]
    return [np.array(call.result().outputs[name].float_val) for call in calls]


@pytest.mark.parametrize("signature", SIGNATURES)
def test_requests_are_neither_split_nor_run_together(serve, base_path, batching, signature):
    """If rows were independent, the large request would be split, because workers are idle."""
    draw = np.random.default_rng(1)
    for stubs in (serve(base_path), batching):
        for rows in ([4000], draw.integers(1, 20, REQUESTS)):
            requests = [{"user": USER, "item": draw.random(n, np.float32)} for n in rows]
            shares = together(stubs, signature, requests, "share")
            for inputs, share in zip(requests, shares, strict=True):
                expected = np.exp(inputs["item"]) / np.exp(inputs["item"]).sum()
                np.testing.assert_allclose(share, expected, rtol=1e-4)
        for metric in ("divided_requests", "joined_requests"):
            assert of_predicts(stubs, metric, signature) == 0


def test_where_candidates_interact_columnar_is_one_run_and_late_one_for_each_user(
    serve: Any, base_path: Path
) -> None:
    random = np.random.default_rng(1)
    users, items = random.random(3, np.float32), random.random(20, np.float32)
    row_to_user = random.integers(0, 3, 20)
    several = {"user": users, "item": items, "row_to_user": row_to_user}
    stubs = serve(base_path)

    def share(inputs: Inputs, signature: str) -> Any:
        return stubs.predict(inputs, signature_name=signature, output_filter=["share"])["share"]

    repeated = stubs.predict({"user": users[row_to_user], "item": items}, signature_name="columnar")
    assert share(several, "columnar").tolist() == repeated["share"].tolist()
    late = share(several, LATE)
    for user in range(3):
        of_user = row_to_user == user
        alone = share({"user": users[[user]], "item": items[of_user]}, LATE)
        np.testing.assert_allclose(late[of_user], alone, rtol=1e-6)
    # An output without rows belongs to the whole request, not to one user.
    total = stubs.predict(several, signature_name="columnar")["total"]
    assert total == repeated["total"]
    with pytest.raises(grpc.RpcError) as error:
        stubs.predict(several, signature_name=LATE)
    assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert '"total"' in error.value.details()


SLICES = ("--num_workers=4", "--max_piece_milliseconds=0.01")
Request = tuple[Inputs, np.ndarray]


@pytest.fixture(scope="module", name="lists_path")
def _lists_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp("lists")
    lists_model.save(base_path / "1")
    return base_path


def lists(draw: np.random.Generator, rows: int, longest: int) -> list[list[float]]:
    """Few distinct lists, so that states are found again beside longer and shorter lists."""
    return [
        draw.integers(1, 3, draw.integers(0, longest + 1)).astype(float).tolist()
        for _ in range(rows)
    ]


def sent(draw: np.random.Generator, *domains: list[list[float]]) -> Inputs:
    found = {}
    for name, rows in zip(lists_model.WEIGHTS, domains, strict=True):
        found |= lists_model.columns(name, rows, int(draw.integers(0, 3)))
    return found


def request(seed: int, candidates: int = 8, clicks: int = 2) -> Request:
    """A request of one user, and its scores."""
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(1, candidates + 1))
    history, genres = lists(draw, 1, 4), lists(draw, rows, 3)
    of_candidates = lists(draw, rows, clicks)
    expected = lists_model.scores(history * rows, genres, of_candidates)
    return sent(draw, history, genres, of_candidates), expected


def several_users(seed: int) -> Request:
    """A request of several users, each with the scores of a request of its own."""
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(2, 9))
    row_to_user = np.concatenate([[0, 1], draw.integers(0, 2, rows - 2)])
    histories, genres, clicks = lists(draw, 2, 4), lists(draw, rows, 3), lists(draw, rows, 2)
    expected = np.zeros(rows)
    for user in range(2):
        (own,) = np.nonzero(row_to_user == user)
        expected[own] = lists_model.scores(
            [histories[user]] * len(own), [genres[i] for i in own], [clicks[i] for i in own]
        )
    return sent(draw, histories, genres, clicks) | {"row_to_user": row_to_user}, expected


@pytest.mark.parametrize("flags", [(), ONE_WORKER, NOTHING_KEPT, SLICES])
def test_states_of_one_length_answer_no_other(
    serve: Callable[..., Stubs], lists_path: Path, flags: tuple[str, ...]
) -> None:
    stubs = serve(lists_path, *flags)
    for seed in range(300):
        inputs, expected = (several_users if seed % 4 == 1 else request)(seed)
        scores = stubs.predict(inputs, signature_name=LATE)["score"]
        np.testing.assert_allclose(scores, expected, rtol=1e-5, err_msg=str(seed))
        if "row_to_user" not in inputs:
            scores = stubs.predict(inputs, signature_name="columnar")["score"]
            np.testing.assert_allclose(scores, expected, rtol=1e-5, err_msg=str(seed))
    programs = {
        sample.labels["program"]: sample.value
        for sample in Metrics(stubs.server).samples
        if sample.name == ":colcast:program_total" and sample.labels["signature_name"] == LATE
    }
    assert programs["stages"] > 50, programs


@pytest.mark.parametrize("flags", [ONE_WORKER, (*ONE_WORKER, *NOTHING_KEPT[1:]), BATCHING])
def test_requests_with_lists_of_any_length_are_joined(
    serve: Callable[..., Stubs], lists_path: Path, flags: tuple[str, ...]
) -> None:
    stubs = serve(lists_path, *flags)
    starts = count(0, 100)

    def ask() -> None:
        start = next(starts)
        drawn = [request(seed, clicks=0) for seed in range(start, start + 100)]
        answers = together(stubs, LATE, [inputs for inputs, _ in drawn], "score")
        for scores, (_, expected) in zip(answers, drawn, strict=True):
            np.testing.assert_allclose(scores, expected, rtol=1e-5)

    for _ in range(3):
        until_joined(ask, stubs, LATE)
