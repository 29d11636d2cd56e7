"""Requests with row_to_<domain> run together and by slices as those without do."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from ..waiting import wait_until
from .busy_server import held_worker
from .metrics_page import Metrics, of_predicts, states_computed
from .servers import NOTHING_KEPT, ONE_WORKER, STATES_OFF, WHOLE_AND_ALONE, Stubs
from .test_domains import INDEXED, request_of

Code = grpc.StatusCode
Columns = dict[str, Any]
LATE = "columnar_late"
SLICES = ("--num_workers=4", "--max_piece_milliseconds=0.2", f"--max_expanded_bytes={64 << 20}")


@pytest.fixture(scope="module", name="alone")
def _alone(serve: Callable[..., Stubs], shops_path: Path) -> Stubs:
    return serve(shops_path, *WHOLE_AND_ALONE)


@pytest.fixture(scope="module", name="together", params=[ONE_WORKER, NOTHING_KEPT])
def _together(
    request: pytest.FixtureRequest, serve: Callable[..., Stubs], shops_path: Path
) -> Stubs:
    """The worker is busy with one request while all others arrive."""
    return serve(shops_path, *request.param)


@pytest.fixture(scope="module", name="slices", params=[(), STATES_OFF])
def _slices(request: pytest.FixtureRequest, serve: Callable[..., Stubs], shops_path: Path) -> Stubs:
    return serve(shops_path, *SLICES, *request.param)


def drawn(seed: int, most: int = 25) -> tuple[Columns, int]:
    """A request with the index of some domains, or of none, and its candidates."""
    draw = random.Random(seed)
    count = draw.randint(1, most)
    rows = {domain: draw.randint(1, 6) for domain in INDEXED if draw.random() < 0.4}
    columns = request_of(np.random.default_rng(seed), rows, count)
    for name in list(columns):
        domain = name.partition("_")[0]
        if domain in rows and draw.random() < 0.2:  # one row for all rows of its domain
            lengths = name.removesuffix("/length")
            for column in (lengths, f"{lengths}/length"):
                if column in columns and rows[domain] > 1:
                    columns[column] = columns[column][:1]
        elif domain in ("shop", "campaign") and domain not in rows and seed % 3 == 0:
            columns[name] = columns[name][:1]  # sent once, without an index
    return columns, count


def wrong(columns: Columns, kind: int) -> Columns:
    """The same, wrong in one of five ways."""
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


def test_what_requests_of_a_run_share_is_computed_once(
    serve: Callable[..., Stubs], shops_path: Path, tmp_path: Path
) -> None:
    """Shops and campaigns of five requests that differ in users and items."""
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
    spec = {"signature_name": LATE}
    with_index = 0
    for seed in range(30):
        columns, _ = drawn(seed, most=4000)
        before = of_predicts(slices, "divided_requests", LATE)
        got = slices.predict(columns, **spec)["score"]
        has_index = any(name.startswith("row_to_") for name in columns)
        with_index += has_index and of_predicts(slices, "divided_requests", LATE) > before
        expected = alone.predict(columns, **spec)["score"]
        np.testing.assert_allclose(got, expected, rtol=2e-5, err_msg=str(seed))
    assert with_index > 0


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
