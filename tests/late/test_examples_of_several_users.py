"""tf.Examples with --example_transcoding=late: each user is computed once; the log says so."""

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess
from hypothesis import given, settings
from hypothesis import strategies as st

from ..models.ranker import ITEMS, USER, save
from ..models.saving import save_parser, save_version, serialized
from ..server.metrics_page import Metrics

USERS: list[dict[str, Any]] = [
    {"user_age": 44, "user_words": ["red", "blue"]},
    {"user_age": 44, "user_words": ["red", "blue", "green", "unheard of, and longer than others"]},
    {"user_age": 45, "user_words": []},
]


class Server:
    """A server with one way of reading tf.Examples, and a client."""

    def __init__(self, process: ServerProcess, client: RankingClient) -> None:
        self._process = process
        self._client = client

    def scores(self, examples: list[bytes]) -> Any:
        """Scores tf.Examples with the signature that parses them."""
        return self._client.predict_examples(examples, target="example").scores

    def computed(self, store: str) -> float:
        """The number of users' or items' states computed so far."""
        samples = Metrics(self._process).samples
        name = ":colcast:states_computed_total"
        return sum(s.value for s in samples if s.name == name and s.labels["store"] == store)

    def transcoded(self) -> float:
        """The number of requests so far whose tf.Examples the server read as columns."""
        samples = Metrics(self._process).samples
        return sum(s.value for s in samples if s.name == ":colcast:transcoded_requests_total")


def _serve(base_path: Path, flags: list[str]) -> Iterator[Server]:
    with (
        ServerProcess("ranker", base_path, flags) as process,
        RankingClient(process.target, "ranker") as client,
    ):
        yield Server(process, client)


@pytest.fixture(scope="module", name="monitoring")
def _monitoring(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return publishing(tmp_path_factory.mktemp("monitoring"))


@pytest.fixture(scope="module", name="many")
def _many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base path of a model whose last stage scores several users in one run."""
    folder = tmp_path_factory.mktemp("many")
    save(folder / "model", masked=True)
    report = export_saved_model(
        folder / "model", folder / "ranker" / "1", user_features=["user_*"], late=True
    )
    stages = report.signatures[0].stages
    assert stages is not None
    assert stages.users_per_run == "many"
    return folder / "ranker"


@pytest.fixture(scope="module")
def off(many: Path) -> Iterator[Server]:
    """A server that lets TensorFlow parse Examples."""
    yield from _serve(many, ["--example_transcoding=off"])


@pytest.fixture(scope="module")
def late(many: Path, monitoring: list[str]) -> Iterator[Server]:
    """A server that reads Examples as columns and has no state cache, so it computes all states."""
    flags = ["--user_state_bytes=0", "--item_state_bytes=0", "--example_transcoding=late"]
    yield from _serve(many, [*monitoring, *flags])


def _rows(users: list[dict[str, Any]]) -> list[bytes]:
    return [serialized(user | ITEMS[n % len(ITEMS)]) for n, user in enumerate(users)]


def _check(off: Server, late: Server, examples: list[bytes], users: int) -> None:
    before, transcoded = late.computed("user"), late.transcoded()
    np.testing.assert_allclose(late.scores(examples), off.scores(examples), rtol=1e-5)
    assert late.transcoded() == transcoded + 1
    assert late.computed("user") == before + users


def _named(age: int | None, *words: str) -> dict[str, Any]:
    return {"user_words": list(words)} | ({} if age is None else {"user_age": age})


CASES: dict[str, tuple[list[dict[str, Any]], int]] = {
    "three users": (USERS * 20, 3),
    "rows that are not adjacent": ([USERS[0], USERS[1]] * 4, 2),
    "lists of other lengths": ([_named(1), _named(2, "red"), _named(3, "red", "blue")] * 4, 3),
    "a long list first": ([_named(4, "red", "blue", "green"), _named(1), _named(2, "red")] * 4, 3),
    "an additional empty string": ([_named(None, "red"), _named(None, "red", "")] * 4, 2),
    "one user written in two ways": ([_named(30, "red"), _named(None, "red")] * 4, 1),
    "users that hardly repeat, scored as rows": ([*USERS, USERS[0], USERS[1]], 0),
}


@pytest.mark.parametrize("case", CASES)
def test_each_user_is_computed_once(off: Server, late: Server, case: str) -> None:
    users, computed = CASES[case]
    _check(off, late, _rows(users), users=computed)


def test_identical_items_are_no_obstacle(off: Server, late: Server) -> None:
    _check(off, late, [serialized(user | ITEMS[3]) for user in USERS * 4], users=3)


@settings(max_examples=40, deadline=None)
@given(
    users=st.lists(
        st.fixed_dictionaries(
            {"user_words": st.lists(st.sampled_from(["", "red", "blue", "r" * 30]), max_size=3)},
            optional={"user_age": st.integers(0, 3)},
        ),
        min_size=1,
        max_size=4,
    ),
    times=st.integers(1, 6),
    order=st.randoms(use_true_random=False),
)
def test_any_users_in_any_order_score_as_tensorflow_parses_them(
    off: Server, late: Server, users: Any, times: int, order: random.Random
) -> None:
    rows = users * times
    order.shuffle(rows)
    np.testing.assert_allclose(late.scores(_rows(rows)), off.scores(_rows(rows)), rtol=1e-5)


def test_where_a_run_takes_one_user_rows_stay_together(base_path: Path, monitoring: Any) -> None:
    """The model's scores depend on the longest list of the request."""
    for off in _serve(base_path, ["--example_transcoding=off"]):
        for late in _serve(base_path, [*monitoring, "--example_transcoding=late"]):
            _check(off, late, _rows(USERS * 4), users=0)


def test_kept_states_of_users_are_found(many: Path, off: Server, monitoring: Any) -> None:
    examples = _rows(USERS * 8)
    for late in _serve(many, [*monitoring, "--example_transcoding=late"]):
        expected, before = off.scores(examples), late.computed("user")
        for _ in range(3):
            np.testing.assert_allclose(late.scores(examples), expected, rtol=1e-5)
        assert late.computed("user") == before + len(USERS)


def said_by(base_path: Path, *flags: str) -> list[str]:
    """Sends two requests with tf.Examples; returns the log lines about them."""
    examples = [serialized(USER | item) for item in ITEMS]
    with (
        ServerProcess("ranker", base_path, flags) as server,
        RankingClient(server.target, "ranker", timeout_seconds=60) as client,
    ):
        for _ in range(2):
            assert len(client.predict_examples(examples, target="example").scores) == len(ITEMS)
        return [line for line in server.log().splitlines() if "tf.Examples are" in line]


@pytest.mark.parametrize(("mode", "runs"), [("exact", "columnar"), ("late", "columnar_late")])
def test_the_signature_that_runs_in_place_of_another(base_path: Path, mode: str, runs: str) -> None:
    (said,) = said_by(base_path, f"--example_transcoding={mode}")
    assert f'"serving_default": tf.Examples are read as columns and run by "{runs}"' in said


def test_the_exports_reason_why_not(base_path: Path, tmp_path: Path) -> None:
    shutil.copytree(base_path / "1", tmp_path / "1")
    file = tmp_path / "1" / "assets.extra" / "colcast.json"
    record = json.loads(file.read_text())
    reason = "the model draws random numbers"
    record["signatures"]["columnar"]["example_transcoding"] = reason
    file.write_text(json.dumps(record))
    (said,) = said_by(tmp_path)
    assert f'"serving_default": tf.Examples are parsed by TensorFlow: {reason}' in said


def test_a_model_that_was_never_exported(base_path: Path, tmp_path: Path) -> None:
    shutil.copytree(base_path / "1", tmp_path / "1")
    shutil.rmtree(tmp_path / "1" / "assets.extra")
    (said,) = said_by(tmp_path)
    assert "parsed by TensorFlow: no export converted it (assets.extra/colcast.json)" in said


def test_signatures_of_columns_have_none(base_path: Path, tmp_path: Path) -> None:
    """A user stage and a model have one string input each, but it holds no tf.Examples."""
    spec = {name: tf.io.FixedLenFeature([], tf.string) for name in ("user_name", "item_name")}

    def score(features: dict[str, tf.Tensor]) -> tf.Tensor:
        lengths = [tf.strings.length(features[name]) for name in spec]
        return tf.cast(lengths[0] * lengths[1], tf.float32)

    save_parser(tmp_path / "model", tf.Module(), spec, score)
    export_saved_model(
        tmp_path / "model", tmp_path / "texts" / "1", user_features=["user_*"], late=True
    )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "title")])
    def own(title: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"length": tf.strings.length(title)}

    save_version(tmp_path / "titles" / "1", tf.Module(), own)
    for name, examples in (("texts", 1), ("titles", 0)):
        with ServerProcess(name, tmp_path / name) as server:
            said = [line for line in server.log().splitlines() if "tf.Examples are" in line]
        assert len(said) == examples, said
        assert all('"serving_default"' in line for line in said)
