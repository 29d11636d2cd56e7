"""Behind a batching session, each request is answered correctly, for its own user, or refused.

    pytest tests/conformance/test_batching.py                                   batching_session.py
    pytest tests/conformance/test_batching.py --target HOST:PORT --batching     a server of your own

The model is a ranker exported with --late; the correct answers are those of the original model.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from tests.conformance.batching_session import BatchingSession, RefusedError
from tests.conformance.conftest import write_models
from tests.models.saving import serialized

REFUSALS = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,  # --grpc_max_threads of TF Serving
)
ONCE = ("columnar_late", "columnar_exact")
USERS = [
    {"user_age": 44.0, "user_words": ["red", "unheard of", "blue"]},
    {"user_age": 12.0, "user_words": ["green", "red", "green"]},
    {"user_age": 30.0, "user_words": ["blue"]},
    {"user_age": 71.0, "user_words": []},
]
ITEMS = [{"item_id": 7 * n % 40, "item_price": [n / 3, -1.0]} for n in range(23)]
Scores = Callable[["Request"], Any]
Columns = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """One user, as an index into USERS, and candidates, as indices into ITEMS.

    `width` is the padded width of the user's list; values beyond its length are padding.
    """

    signature: str
    user: int
    items: tuple[int, ...]
    once: bool = False  # whether the user is sent as one row
    width: int = 3

    def columns(self) -> dict[str, Any]:
        user, items = USERS[self.user], [ITEMS[item] for item in self.items]
        rows = 1 if self.once else len(items)
        words = [word.encode() for word in user["user_words"]]
        padded = words + [b""] * (self.width - len(words))
        return {
            "user_age": np.full(rows, user["user_age"], np.float32),
            "user_words": np.array([padded] * rows, object).reshape(rows, self.width),
            "user_words/length": np.full(rows, len(words)),
            "item_id": np.array([item["item_id"] for item in items]),
            "item_price": np.array([item["item_price"] for item in items], np.float32),
        }


class Batching:
    """Joins requests: a session, or a server given by --target (`session` is then None)."""

    def __init__(self, target: str, session: BatchingSession | None) -> None:
        channel = grpc.insecure_channel(target)
        self._stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        self.session = session

    def score(self, signature: str, columns: Columns) -> Any:
        """The scores, or the RefusedError."""
        try:
            if self.session:
                return self.session.run(signature, dict(columns))["score"]
            message = predict_pb2.PredictRequest()
            message.model_spec.name = "ranker"
            message.model_spec.signature_name = signature
            for name, column in columns.items():
                message.inputs[name].CopyFrom(tf.make_tensor_proto(column))
            return tf.make_ndarray(self._stub.Predict(message, timeout=60).outputs["score"])
        except grpc.RpcError as error:
            return RefusedError(error.code(), error.details())
        except RefusedError as refused:
            return refused

    def scores(self, request: Request) -> Any:
        return self.score(request.signature, request.columns())

    def together(self, *requests: Request) -> list[Any]:
        """Sends requests at the same time; returns the scores or the RefusedError of each."""
        with ThreadPoolExecutor(len(requests)) as threads:
            return list(threads.map(self.scores, requests))


@pytest.fixture(scope="module")
def ranker_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_models(tmp_path_factory.mktemp("models"), "ranker")


@pytest.fixture(scope="module")
def right(ranker_directory: Path) -> Scores:
    """The original model's scores for the request's candidates as tf.Examples."""
    model = tf.saved_model.load(str(ranker_directory / "ranker_of_examples"))

    def score(request: Request) -> Any:
        rows = [USERS[request.user] | ITEMS[item] for item in request.items]
        examples = tf.constant([serialized(row) for row in rows])
        return model.signatures["serving_default"](examples=examples)["score"].numpy()

    return score


@pytest.fixture
def start(request: pytest.FixtureRequest, ranker_directory: Path) -> Callable[..., Any]:
    """Makes the session, or uses the server given by --target."""
    given = request.config.getoption("--target", default=None)
    if given and not request.config.getoption("--batching"):
        pytest.skip("needs --batching")

    def started(max_batch_size: int, timeout_seconds: float = 60, pad: bool = False) -> Batching:
        if given:
            return Batching(given, None)
        session = BatchingSession(
            ranker_directory / "ranker" / "1",
            max_batch_size=max_batch_size,
            batch_timeout_seconds=timeout_seconds,
            pad=pad,
        )
        return Batching("", session)

    return started


def check(answer: Any, expected: Any) -> bool:
    """Returns whether there is an answer; it must be correct, and an error must be a refusal."""
    if isinstance(answer, RefusedError):
        assert answer.code in REFUSALS, str(answer)
        return False
    np.testing.assert_allclose(answer, expected, rtol=1e-5)
    return True


def test_requests_with_all_rows_are_joined_and_answered_rightly(
    start: Callable[..., Any], right: Scores
) -> None:
    requests = [Request("columnar", 0, (3, 1, 4)), Request("columnar", 1, (1, 5))]
    batching = start(max_batch_size=5)
    answers = batching.together(*requests)
    assert all(check(a, right(r)) for a, r in zip(answers, requests, strict=True))
    if batching.session:
        assert [sorted(rows) for _, rows in batching.session.batches] == [[2, 3]]


@pytest.mark.parametrize("signature", ["columnar", *ONCE])
def test_a_user_sent_once_beside_candidates_is_no_batch(
    start: Callable[..., Any], right: Scores, signature: str
) -> None:
    request = Request(signature, 0, (3, 1, 4), once=True)
    batching = start(max_batch_size=10)
    answered = check(batching.scores(request), right(request))
    if batching.session:
        assert not answered
        assert batching.session.batches == []


@pytest.mark.parametrize("signature", ONCE)
def test_two_users_with_one_candidate_each_are_refused_together(
    start: Callable[..., Any], right: Scores, signature: str
) -> None:
    requests = [Request(signature, user, (3,)) for user in (0, 1)]
    batching = start(max_batch_size=2)
    answers = batching.together(*requests)
    for answer, request in zip(answers, requests, strict=True):
        answered = check(answer, right(request))
        if batching.session:
            assert not answered
            assert f"{signature}/inputs/user_" in str(answer)
            assert "is not compatible with expected shape [1" in str(answer)


def test_of_many_requests_none_is_answered_wrongly(
    start: Callable[..., Any], right: Scores
) -> None:
    draw = random.Random(0)
    requests = [
        Request(
            draw.choice(["columnar", *ONCE]),
            draw.randrange(len(USERS)),
            tuple(draw.choices(range(len(ITEMS)), k=draw.choice([1, 1, 1, 2, 5]))),
            once=draw.random() < 0.2,
        )
        for _ in range(300)
    ]
    batching = start(max_batch_size=8, timeout_seconds=0.002)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(batching.scores, requests))
    answered = [check(a, right(r)) for a, r in zip(answers, requests, strict=True)]
    assert any(answered)
    if batching.session:
        assert not all(answered)
        assert any(len(rows) > 1 for _, rows in batching.session.batches)


@pytest.mark.parametrize(
    ("user", "width", "pad", "answered"),
    [(2, 1, False, False), (2, 1, True, True), (3, 0, True, False), (3, 1, True, True)],
    ids=["unpadded", "padded", "empty", "empty of width 1"],
)
def test_lists_of_different_widths_need_padding_and_a_value_to_pad(
    start: Callable[..., Any], right: Scores, user: int, width: int, pad: bool, answered: bool
) -> None:
    """TensorFlow Serving pads a list with one of its values; its length excludes the padding."""
    requests = [Request("columnar", 0, (3,)), Request("columnar", user, (5,), width=width)]
    batching = start(max_batch_size=2, pad=pad)
    for answer, request in zip(batching.together(*requests), requests, strict=True):
        was_answered = check(answer, right(request))
        if batching.session:
            assert was_answered == answered


# `columnar_pair` scores no candidate with another request's user. The states are computed in
# TensorFlow.

JOINED = "user_state_row_must_be_0_to_U_minus_1_of_one_request"
USER, ITEM = ("user_age", "user_words", "user_words/length"), ("item_id", "item_price")
Run = Callable[[str, Columns], Columns]


@dataclass(frozen=True)
class Pairs:
    """Users, items, and each item's user; `number`: whether the users' rows are numbered."""

    users: tuple[int, ...]
    items: tuple[int, ...]
    row_to_user: tuple[int, ...]
    number: bool = True

    def columns(self, run: Run) -> Columns:
        """The columns that a client sends if it computes the states of users and items first."""
        users = [Request("", user, (0,)).columns() for user in self.users]
        stacked = {name: np.concatenate([user[name] for user in users]) for name in USER}
        items = Request("", 0, self.items).columns()
        states = run("columnar_user", stacked)
        states |= run("columnar_item", {name: items[name] for name in ITEM})
        if self.number:
            states["user_state/row"] = np.arange(len(self.users))
        return states | {"row_to_user": np.array(self.row_to_user)}

    def expected(self, right: Scores) -> Any:
        return np.concatenate(
            [
                right(Request("", self.users[row], (item,)))
                for item, row in zip(self.items, self.row_to_user, strict=True)
            ]
        )


def one(user: int, item: int) -> Pairs:
    return Pairs((user,), (item,), (0,), number=False)


def five(first: int) -> Pairs:
    users = tuple((first + n) % len(USERS) for n in range(5))
    return Pairs(users, (first, 7, 1, 9, 4), (2, 0, 4, 1, 3))


@pytest.fixture(scope="module")
def run(ranker_directory: Path) -> Run:
    """A function that runs a signature in TensorFlow."""
    signatures = tf.saved_model.load(str(ranker_directory / "ranker" / "1")).signatures

    def run_signature(name: str, columns: Columns) -> Columns:
        fed = {key: tf.constant(column) for key, column in columns.items()}
        return {key: output.numpy() for key, output in signatures[name](**fed).items()}

    return run_signature


@pytest.mark.parametrize(
    "requests", [[one(0, 3), one(1, 3)], [five(0), five(1)], [one(0, 3), five(1)]]
)
def test_users_of_several_requests_are_refused(start, run, right, requests: list[Pairs]) -> None:
    batching = start(max_batch_size=sum(len(request.items) for request in requests))
    columns = [request.columns(run) for request in requests]
    with ThreadPoolExecutor(len(requests)) as threads:
        answers = list(threads.map(lambda sent: batching.score("columnar_pair", sent), columns))
    for answer, request in zip(answers, requests, strict=True):
        answered = check(answer, request.expected(right))
        if batching.session:
            assert not answered
            assert JOINED in str(answer)


def test_of_many_pairs_none_is_answered_wrongly(start, run, right) -> None:
    draw = random.Random(0)
    requests = [
        one(draw.randrange(len(USERS)), draw.randrange(len(ITEMS)))
        if draw.random() < 0.8
        else five(draw.randrange(9))
        for _ in range(200)
    ]
    columns = [request.columns(run) for request in requests]
    expected = [request.expected(right) for request in requests]
    batching = start(max_batch_size=8, timeout_seconds=0.002)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda sent: batching.score("columnar_pair", sent), columns))
    answered = [check(a, e) for a, e in zip(answers, expected, strict=True)]
    assert any(answered)
    if batching.session:
        assert not all(answered)
