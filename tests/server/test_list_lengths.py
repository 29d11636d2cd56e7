"""Scores that depend on the longest lists of their request: states, joined requests and slices."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ..models import lists_model
from .metrics_page import Metrics, of_predicts
from .servers import BATCHING, NOTHING_KEPT, ONE_WORKER, Stubs

LATE = "columnar_late"
SLICES = ("--num_workers=4", "--max_piece_milliseconds=0.01")
Request = tuple[dict[str, np.ndarray], np.ndarray]


@pytest.fixture(scope="module", name="base_path")
def _base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp("lists")
    lists_model.save(base_path / "1")
    return base_path


def lists(draw: np.random.Generator, rows: int, longest: int) -> list[list[float]]:
    """Few distinct lists, so that states are found again beside longer and shorter lists."""
    return [
        draw.integers(1, 3, draw.integers(0, longest + 1)).astype(float).tolist()
        for _ in range(rows)
    ]


def sent(draw: np.random.Generator, *domains: list[list[float]]) -> dict[str, np.ndarray]:
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
    serve: Callable[..., Stubs], base_path: Path, flags: tuple[str, ...]
) -> None:
    stubs = serve(base_path, *flags)
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


def together(stubs: Stubs, requests: list[Request]) -> None:
    calls = [
        stubs.prediction.Predict.future(stubs.request(inputs, signature_name=LATE), timeout=60)
        for inputs, _ in requests
    ]
    for call, (_, expected) in zip(calls, requests, strict=True):
        scores = np.array(call.result().outputs["score"].float_val)
        np.testing.assert_allclose(scores, expected, rtol=1e-5)


@pytest.mark.parametrize("flags", [ONE_WORKER, (*ONE_WORKER, *NOTHING_KEPT[1:]), BATCHING])
def test_requests_with_lists_of_any_length_are_joined(
    serve: Callable[..., Stubs], base_path: Path, flags: tuple[str, ...]
) -> None:
    stubs = serve(base_path, *flags)
    for start in range(0, 400, 100):
        together(stubs, [request(seed, clicks=0) for seed in range(start, start + 100)])
    assert of_predicts(stubs, "joined_requests", LATE) > 0
