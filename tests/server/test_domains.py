"""Several users, shops and campaigns: each distinct row is sent once and computed once."""

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from ..models import shops, stages_model
from .metrics_page import of_predicts, until_joined
from .servers import NOTHING_KEPT, ONE_WORKER, STATES_OFF, WHOLE_AND_ALONE, Stubs

v1 = tf.compat.v1
Code = grpc.StatusCode
Columns = dict[str, Any]
INDEXED = ("user", "item", "shop", "campaign")
LATE = "columnar_late"
SIGNATURES = ("columnar", LATE)


@pytest.fixture(scope="module", name="score")
def _score(shops_path: Path) -> Iterator[Any]:
    """A function that scores candidates in TensorFlow; every column has a row per candidate."""
    session = v1.Session(graph=tf.Graph())
    with session.graph.as_default():
        loaded = v1.saved_model.loader.load(session, ["serve"], str(shops_path / "1"))
    signature = loaded.signature_def["columnar"]

    def run(columns: Mapping[str, Any]) -> Any:
        feeds = {signature.inputs[name].name: value for name, value in columns.items()}
        return session.run(signature.outputs["score"].name, feeds)

    yield run
    session.close()


@pytest.fixture(
    scope="module", params=[(), NOTHING_KEPT], ids=["kept", "nothing kept"], name="stubs"
)
def _stubs(request: pytest.FixtureRequest, shops_path: Path, serve: Any) -> Stubs:
    return serve(shops_path, *request.param)


def request_of(random: np.random.Generator, rows: Mapping[str, int], count: int) -> Columns:
    """A random request of `count` candidates; it has an index for each domain in `rows`."""
    columns: Columns = {}
    for domain in INDEXED:
        own = rows.get(domain, 1 if domain == "user" else count)
        columns |= shops.rows(domain, own, random)
        if domain in rows:
            columns[f"row_to_{domain}"] = random.integers(0, own, count)
    return columns


def taken(columns: Columns, domain: str, rows: Any) -> Columns:
    """Selects rows of a domain's columns."""
    return {name: c[rows] for name, c in columns.items() if name.startswith(f"{domain}_")}


def repeated(columns: Columns, count: int) -> Columns:
    """Expands every column of the request to one row per candidate."""
    made = {}
    for name, column in columns.items():
        if name.startswith("row_to_"):
            continue
        index = columns.get(f"row_to_{name.partition('_')[0]}")
        if index is None:
            index = np.zeros(count, int) if len(column) == 1 else np.arange(count)
        made[name] = column[index]
    return made


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.dictionaries(st.sampled_from(INDEXED), st.integers(1, 9)),
    count=st.integers(1, 40),
    items=st.integers(1, 40),
)
def test_scores_are_those_of_repeated_rows(
    stubs: Any, score: Any, seed: int, rows: dict[str, int], count: int, items: int
) -> None:
    random = np.random.default_rng(seed)
    columns = request_of(random, rows, count)
    if "item" not in rows:  # no index tells the server which items repeat
        columns |= taken(columns, "item", random.integers(0, min(items, count), count))
    expected = score(repeated(columns, count))
    for signature in SIGNATURES:
        got = stubs.predict(columns, signature_name=signature)["score"]
        np.testing.assert_allclose(got, expected, rtol=2e-5, err_msg=signature)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"row_to_shop": [0, -1, 0, 1]}, ["row 1 is -1"]),
        ({"row_to_shop": [0, 1, 2, 2**63 - 1]}, ["row 3", str(2**63 - 1)]),
        ({"row_to_shop": [0, 1, 2]}, ["has 3 rows", "N = 4"]),
        ({"row_to_shop": np.array([0, 1, 2, 0], np.int32)}, ["int32", "int64"]),
        ({"row_to_author": [0] * 4}, ['input "row_to_author" is not in the signature']),
        ({"shop_id_0": np.array([1, 2])}, ['"shop_id_0" has 2 rows']),
    ],
)
def test_an_index_that_names_no_row_is_refused(
    stubs: Any, change: Columns, words: list[str]
) -> None:
    columns = request_of(np.random.default_rng(1), {"shop": 3, "user": 2}, 4)
    typed = {name: np.asarray(value) for name, value in change.items()}
    for signature in SIGNATURES:
        with pytest.raises(grpc.RpcError) as error:
            stubs.predict(columns | typed, signature_name=signature)
        assert error.value.code() is Code.INVALID_ARGUMENT
        assert all(word in error.value.details() for word in words), error.value.details()
        assert len(stubs.predict(columns, signature_name=signature)["score"]) == 4


STAGES = {"many": {}, "one": {"users_per_run": "one"}, "unnumbered": {"numbered": False}}


@pytest.mark.parametrize("kind", STAGES)
def test_several_users_get_the_scores_of_repeated_rows_however_the_last_stage_takes_them(
    serve: Any, tmp_path: Path, kind: str
) -> None:
    stages_model.save(tmp_path / "1", **STAGES[kind])
    stubs = serve(tmp_path)
    for seed in range(15):
        random = np.random.default_rng(seed)
        users, count = int(random.integers(1, 7)), int(random.integers(1, 21))
        columns = stages_model.inputs(random, users, count, int(random.integers(1, 4)))
        index = random.integers(0, users, count)
        own = stages_model.DOMAINS["user"]
        plain = {name: c[index] if name in own else c for name, c in columns.items()}
        expected = stubs.predict(plain, signature_name="columnar")
        for signature in SIGNATURES:
            got = stubs.predict(columns | {"row_to_user": index}, signature_name=signature)
            same(signature, got["score"], expected["score"])
            np.testing.assert_array_equal(got["tag"], expected["tag"])


# The client's requests.


def same(signature: str, got: Any, expected: Any) -> None:
    """Checks scores: those of `columnar` bit for bit, late ones within their tolerance."""
    tolerance = 0 if signature == "columnar" else 2e-5
    np.testing.assert_allclose(got, expected, rtol=tolerance, err_msg=signature)


# Requests with indices are joined and split.

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
    flags = ["--enable_batching", f"--batching_parameters_file={file}", "--num_workers=4"]
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
    answers = []
    for columns in requests:
        try:
            answers.append(alone.predict(columns, **spec)["score"])
        except grpc.RpcError as error:
            details = error.details().replace(alone.model, together.model)
            answers.append((error.code(), details))
    assert sum(isinstance(answer, tuple) for answer in answers) >= 10

    def ask() -> None:
        calls = [
            together.prediction.Predict.future(together.request(columns, **spec), timeout=120)
            for columns in requests
        ]
        for seed, (call, expected) in enumerate(zip(calls, answers, strict=True)):
            if isinstance(expected, tuple):
                assert (call.code(), call.details()) == expected, seed
                continue
            assert call.code() is Code.OK, (seed, call.details())
            got = np.array(call.result().outputs["score"].float_val)
            np.testing.assert_allclose(got, expected.ravel(), rtol=2e-5, err_msg=str(seed))

    until_joined(ask, together, LATE)


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
