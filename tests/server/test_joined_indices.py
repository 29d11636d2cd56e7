"""Requests with row_to_<domain> run together and by slices as those without do."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.server import ServerProcess

from ..models import shops
from .metrics_page import Metrics, states_computed
from .test_domains import INDEXED, request_of

Code = grpc.StatusCode
Columns = dict[str, Any]
EXPANDED = f"--max_expanded_bytes={64 << 20}"
NOTHING_KEPT = ("--user_state_bytes=0", "--item_state_bytes=0")


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shops.export(tmp_path_factory.mktemp("shops"))


@pytest.fixture(scope="module", name="serve")
def _serve(folder: Path, shared: Any, monitoring: list[str]) -> Callable[..., ServerProcess]:
    return lambda *flags: shared("ranker", folder, *monitoring, *flags)


@pytest.fixture(scope="module", name="alone")
def _alone(serve: Callable[..., ServerProcess]) -> ServerProcess:
    """Where requests run whole and by themselves."""
    return serve("--nojoin_waiting_requests", "--max_piece_milliseconds=1e6")


@pytest.fixture(scope="module", name="together", params=[(), NOTHING_KEPT])
def _together(
    request: pytest.FixtureRequest, serve: Callable[..., ServerProcess]
) -> tuple[ServerProcess, tuple[str, ...]]:
    """A server whose worker is busy with one request while all others arrive, and its flags."""
    return serve(*request.param, "--num_workers=1"), request.param


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


def counted(server: ServerProcess, what: str) -> float:
    return Metrics(server).value(
        f":colcast:{what}",
        model_name="ranker",
        signature_name="columnar_late",
        API="Predict",
        entrypoint="GRPC",
    )


def joined(server: ServerProcess) -> float:
    return counted(server, "joined_requests")


def split(server: ServerProcess) -> float:
    return counted(server, "divided_requests")


def test_with_wrong_ones_among_them_each_is_answered_as_alone(
    alone: ServerProcess, together: Any, connect: Any
) -> None:
    spec = {"signature_name": "columnar_late"}
    requests = []
    for seed in range(120):
        columns, _ = drawn(seed)
        requests.append(wrong(columns, seed % 7) if seed % 9 == 4 else columns)
    many_server, _ = together
    before = joined(many_server)
    one, many = connect(alone.target), connect(many_server.target)
    answers = []
    for columns in requests:
        try:
            answers.append(one.predict(columns, **spec)["score"])
        except grpc.RpcError as error:
            answers.append((error.code(), error.details()))
    assert sum(isinstance(answer, tuple) for answer in answers) >= 10
    for _ in range(3):
        calls = [
            many.prediction.Predict.future(many.request(columns, **spec), timeout=60)
            for columns in requests
        ]
        for seed, (call, expected) in enumerate(zip(calls, answers, strict=True)):
            if isinstance(expected, tuple):
                assert (call.code(), call.details()) == expected, seed
                continue
            assert call.code() is Code.OK, (seed, call.details())
            got = np.array(call.result().outputs["score"].float_val)
            np.testing.assert_allclose(got, expected.ravel(), rtol=2e-5, err_msg=str(seed))
    assert joined(many_server) > before


def test_what_requests_of_a_run_share_is_computed_once(
    folder: Path, connect: Any, monitoring: list[str]
) -> None:
    """Shops and campaigns of five requests that differ in users and items."""
    base = request_of(np.random.default_rng(1), {"shop": 4, "campaign": 3}, 20)
    requests = []
    for seed in range(40):
        own = request_of(np.random.default_rng(100 + seed), {"shop": 4, "campaign": 3}, 20)
        shared = {n: c for n, c in base.items() if n.startswith(("shop_", "campaign_"))}
        requests.append(own | shared)
    spec = {"signature_name": "columnar_late"}
    with ServerProcess("ranker", folder, [*monitoring, *NOTHING_KEPT, "--num_workers=1"]) as server:
        stubs = connect(server.target)
        calls = [
            stubs.prediction.Predict.future(stubs.request(columns, **spec), timeout=60)
            for columns in requests
        ]
        assert all(call.code() is Code.OK for call in calls)
        assert joined(server) > 0
        assert states_computed(server, "shop") < 4 * len(requests)


@pytest.mark.parametrize("kept", [(), NOTHING_KEPT])
def test_by_slices_each_is_answered_as_whole(
    serve: Callable[..., ServerProcess], alone: ServerProcess, connect: Any, kept: Any
) -> None:
    spec = {"signature_name": "columnar_late"}
    cut = serve(*kept, "--num_workers=4", "--max_piece_milliseconds=0.2", EXPANDED)
    slices, reference = connect(cut.target), connect(alone.target)
    with_index = 0
    for seed in range(30):
        columns, _ = drawn(seed, most=4000)
        before = split(cut)
        got = slices.predict(columns, **spec)["score"]
        has_index = any(name.startswith("row_to_") for name in columns)
        with_index += has_index and split(cut) > before
        expected = reference.predict(columns, **spec)["score"]
        np.testing.assert_allclose(got, expected, rtol=2e-5, err_msg=str(seed))
    assert with_index > 0


def test_a_long_string_that_every_candidate_reads_is_refused_before_it_is_repeated(
    serve: Callable[..., ServerProcess], connect: Any
) -> None:
    columns = request_of(np.random.default_rng(1), {"shop": 100}, 2000)
    name = next(n for n, c in columns.items() if n.startswith("shop_") and c.dtype == object)
    columns[name] = np.array([b"x" * 300_000] + [b""] * 99, object)
    columns["row_to_shop"] = np.zeros(2000, np.int64)
    server = serve("--num_workers=4", "--max_piece_milliseconds=0.2", EXPANDED)
    stubs = connect(server.target)
    with pytest.raises(grpc.RpcError) as refused:
        stubs.predict(columns, signature_name="columnar")
    assert refused.value.code() is Code.RESOURCE_EXHAUSTED
    assert "max_expanded_bytes is" in refused.value.details()
    good = request_of(np.random.default_rng(1), {"shop": 4}, 20)
    assert len(stubs.predict(good, signature_name="columnar")["score"]) == 20
