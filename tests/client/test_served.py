"""A real model on the real server: every form of a request gives bit-identical scores."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from colcast.client import AsyncRankingClient, RankingClient, ServerError
from colcast.client.transport._transport import PREDICT
from colcast.server import ServerProcess
from tensorflow_serving.apis import input_pb2, predict_pb2

from ..models import build
from .conftest import CAN, ITEMS, USER
from .test_inputs import COLUMNS, FORMS

TARGETS = ("auto", "late", "columnar", "stock", "repeated", "example")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("movies")
    build("movies", path / "1")
    return path


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(model_name="movies", model_base_path=models) as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> Iterator[RankingClient]:
    with RankingClient(server.target, "movies", timeout_seconds=60) as connected:
        yield connected


def expected(models: Path) -> Any:
    """TensorFlow's own scores, from tf.Examples."""
    model = tf.saved_model.load(str(models / "1"))
    examples = []
    for item in ITEMS:
        example = tf.train.Example()
        for name, value in {**USER, **item}.items():
            values = value if isinstance(value, list) else [value]
            feature = example.features.feature[name]
            if isinstance(values and values[0], float):
                feature.float_list.value.extend(values)
            elif isinstance(values and values[0], int):
                feature.int64_list.value.extend(values)
            elif values:
                feature.bytes_list.value.extend([text.encode() for text in values])
        examples.append(example.SerializeToString())
    return model.signatures["serving_default"](tf.constant(examples))["scores"].numpy()


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_scores_as_tensorflow_does(
    client: RankingClient, models: Path, target: Any
) -> None:
    ranking = client.rank(USER, ITEMS, target=target, outputs=["scores"])
    np.testing.assert_array_equal(ranking.scores, expected(models))
    assert list(ranking.outputs) == ["scores"]
    assert ranking.model_version == 1


def test_the_server_declares_what_it_can_do(client: RankingClient) -> None:
    assert client.schema().can == CAN


@pytest.mark.parametrize("form", FORMS)
def test_items_in_every_form_score_the_same(client: RankingClient, form: str) -> None:
    scores = client.rank(USER, FORMS[form], outputs=["scores"]).scores
    np.testing.assert_array_equal(scores, client.rank(USER, ITEMS, outputs=["scores"]).scores)


def sent_examples(client: RankingClient) -> list[Any]:
    request = client.encode(USER, ITEMS, target="example")
    message = predict_pb2.PredictRequest.FromString(request)
    return list(tf.make_ndarray(message.inputs["examples"]))


@pytest.mark.parametrize("target", TARGETS)
def test_examples_as_bytes_protos_and_with_context(client: RankingClient, target: Any) -> None:
    scores = client.rank(USER, ITEMS, outputs=["scores"]).scores
    data = sent_examples(client)
    protos = [tf.train.Example.FromString(example) for example in data]
    with_context = input_pb2.ExampleListWithContext(examples=protos)
    for name in USER:
        shared = with_context.context.features.feature[name]
        shared.CopyFrom(protos[0].features.feature[name])
        for example in with_context.examples:
            del example.features.feature[name]
    for examples in (data, protos, with_context):
        found = client.predict_examples(examples, target=target, outputs=["scores"]).scores
        np.testing.assert_array_equal(found, scores)


@pytest.mark.parametrize("target", TARGETS)
def test_mixed_rows(client: RankingClient, target: Any) -> None:
    rows = [{**USER, **item} for item in ITEMS]
    found = client.rank(items=rows, target=target, outputs=["scores"]).scores
    np.testing.assert_array_equal(found, client.rank(USER, ITEMS, outputs=["scores"]).scores)


@pytest.mark.parametrize("target", TARGETS)
def test_nan_for_a_missing_list_scores_as_missing(client: RankingClient, target: Any) -> None:
    items = [{**ITEMS[0], "genres": None}, *ITEMS[1:]]
    frame = pd.DataFrame([{**ITEMS[0], "genres": float("nan")}, *ITEMS[1:]])
    frame["year"] = frame["year"].fillna(1990.0)
    scores = client.rank({**USER, "history": None}, items, target=target).outputs["scores"]
    found = client.rank({**USER, "history": float("nan")}, frame, target=target).outputs["scores"]
    np.testing.assert_array_equal(found, scores)


def test_another_signature_of_examples_asks_for_its_own_features(
    server: ServerProcess,
) -> None:
    items = [{"year": 1990, "vector": [1.0, 2.0, 3.0]}, {"vector": np.ones(3), "year": None}]
    found = []
    for target in ("example", "auto"):
        with RankingClient(
            server.target, "movies", timeout_seconds=60, signature="brief"
        ) as asking:
            found.append(asking.rank({}, items, target=target).outputs["brief"])
    filled = [items[0], {**items[1], "year": 1990.0}]
    with RankingClient(server.target, "movies", timeout_seconds=60, signature="slim") as asking:
        found.append(asking.rank({}, filled).outputs["brief"])
    np.testing.assert_array_equal(found, [np.float32([1990 / 6, 1990 / 3])] * 3)


@pytest.mark.parametrize("target", TARGETS)
def test_several_users_and_prepared_items(client: RankingClient, target: Any) -> None:
    users = [USER, {"age": 20, "city": "Oslo", "history": []}]
    prepared = client.prepare(ITEMS, target=target)
    pairs = [(users[0], prepared), (users[1], ITEMS[1:]), (users[0], ITEMS[:1])]
    found = client.rank_many(pairs, target=target, outputs=["scores"])
    items = [ITEMS, ITEMS[1:], ITEMS[:1]]
    for one, user, rows in zip(found, (users[0], users[1], users[0]), items, strict=True):
        alone = client.rank(user, rows, target=target, outputs=["scores"])
        np.testing.assert_array_equal(one.scores, alone.scores)


@pytest.mark.parametrize("target", ["auto", "late", "columnar"])
def test_several_users_take_one_request(
    client: RankingClient, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    monkeypatch.setattr(client._transport, "call", _recorded(client._transport.call, sent))
    users = [{**USER, "age": age, "history": [age, 1]} for age in range(5)]
    found = client.rank_many([(user, ITEMS) for user in users], target=target, outputs=["scores"])
    assert sent.count(PREDICT) == 1
    for one, user in zip(found, users, strict=True):
        alone = client.rank(user, ITEMS, target=target, outputs=["scores"])
        np.testing.assert_array_equal(one.scores, alone.scores)


def _recorded(call: Any, sent: list[str]) -> Any:
    """Wraps the transport's call and records each method."""

    def noted(what: Any, *args: Any) -> Any:
        sent.append(what.method)
        return call(what, *args)

    return noted


def test_a_user_sent_ahead_changes_no_score(client: RankingClient) -> None:
    before = client.rank(USER, ITEMS, outputs=["scores"]).scores
    client.prefetch(USER)
    np.testing.assert_array_equal(client.rank(USER, ITEMS, outputs=["scores"]).scores, before)


async def test_asyncio(server: ServerProcess, client: RankingClient) -> None:
    async with AsyncRankingClient(server.target, "movies", timeout_seconds=60) as awaited:
        ranking = await awaited.rank(USER, ITEMS, outputs=["scores"])
    expected_scores = client.rank(USER, ITEMS, outputs=["scores"]).scores
    np.testing.assert_array_equal(ranking.scores, expected_scores)


@pytest.mark.parametrize("encoding", ["true", "false"])
def test_both_encodings_of_the_answer(models: Path, client: RankingClient, encoding: str) -> None:
    flag = f"--enable_serialization_as_tensor_content={encoding}"
    with (
        ServerProcess("movies", models, flags=[flag]) as other,
        RankingClient(other.target, "movies", timeout_seconds=60) as asking,
    ):
        outputs = asking.rank(USER, ITEMS).outputs
    for name, values in client.rank(USER, ITEMS).outputs.items():
        np.testing.assert_array_equal(outputs[name], values)


def test_a_thousand_candidates_and_one(client: RankingClient) -> None:
    many = {name: (values * 334)[:1000] for name, values in COLUMNS.items()}
    scores = client.rank(USER, many, outputs=["scores"]).scores
    assert scores.shape == (1000,)
    one = client.rank(USER, ITEMS[:1], outputs=["scores"]).scores
    assert one.tolist() == scores[:1].tolist()


@pytest.mark.parametrize(
    ("settings", "code", "culprit"),
    [
        ({"model": "books"}, "NOT_FOUND", "books"),
        ({"version": 9}, "NOT_FOUND", "9"),
    ],
)
def test_requests_that_the_server_refuses(
    server: ServerProcess, settings: dict[str, Any], code: str, culprit: str
) -> None:
    options = {"model": "movies", "timeout_seconds": 60, **settings}
    with RankingClient(server.target, **options) as asking, pytest.raises(ServerError) as refused:
        asking.rank(USER, ITEMS)
    assert refused.value.code == code
    assert culprit in refused.value.details


def test_an_output_that_does_not_exist(client: RankingClient) -> None:
    with pytest.raises(ServerError, match=r"INVALID_ARGUMENT .*sores"):
        client.rank(USER, ITEMS, outputs=["sores"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_a_child_process_opens_its_own_channels(
    server: ServerProcess, used_before: bool, several: bool
) -> None:
    local = server.target.replace("127.0.0.1", "localhost")
    address = [server.target, local] if several else server.target
    code = f"""
import os, sys
from colcast.client import RankingClient
client = RankingClient({address!r}, "movies", timeout_seconds=120)
if {used_before}:
    client.schema()
child = os.fork()
if child == 0:
    fresh = client.encode({USER!r}, {ITEMS!r})
    client.send(fresh)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
client.rank({USER!r}, {ITEMS!r})
print("both")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "both\n", done.stderr


def test_a_killed_server_fails_no_request(models: Path) -> None:
    with ServerProcess("movies", models) as first, ServerProcess("movies", models) as second:
        client = RankingClient([first.target, second.target], "movies", timeout_seconds=5)
        answered = threading.Semaphore(0)
        failures: list[Exception] = []

        def load() -> None:
            for age in range(200):
                try:
                    client.rank({**USER, "age": age}, ITEMS)
                except Exception as error:
                    failures.append(error)
                answered.release()

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            assert answered.acquire(timeout=60)
        first.kill()
        for thread in threads:
            thread.join()
        client.close()
    assert failures == []


def test_a_refusal_for_lack_of_room_is_reported_and_leaves_expansion_on(models: Path) -> None:
    kib = 1024
    limits = [f"--max_expanded_bytes={100 * kib}", f"--max_request_bytes={32 * kib}"]
    user = {**USER, "city": "x" * 10 * kib}
    with (
        ServerProcess("movies", models, limits) as server,
        RankingClient(server.target, "movies", timeout_seconds=60) as client,
    ):
        with pytest.raises(ServerError, match="max_expanded_bytes") as refused:
            client.rank(user, ITEMS * 10, target="columnar")
        assert refused.value.code == "RESOURCE_EXHAUSTED"
        # This request fits the size limit only because the server repeats the user's rows.
        assert len(client.rank(user, ITEMS * 2, target="columnar").scores) == 6
