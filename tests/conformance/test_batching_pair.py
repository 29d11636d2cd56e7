"""Behind a batching session, `columnar_pair` scores no candidate with another request's user.

The states are computed in TensorFlow; test_batching.py says how to test a server of your own.
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

from tests.conformance.test_batching import (
    ITEMS,
    USERS,
    Batching,
    Request,
    Scores,
    check,
    ranker_directory,  # noqa: F401
    right,  # noqa: F401
    start,  # noqa: F401
)

JOINED = "user_state_row_must_be_0_to_U_minus_1_of_one_request"
USER, ITEM = ("user_age", "user_words", "user_words/length"), ("item_id", "item_price")
Columns = dict[str, Any]
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

    def expected(self, right: Scores) -> Any:  # noqa: F811
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
def run(ranker_directory: Path) -> Run:  # noqa: F811
    """A function that runs a signature in TensorFlow."""
    signatures = tf.saved_model.load(str(ranker_directory / "ranker" / "1")).signatures

    def run_signature(name: str, columns: Columns) -> Columns:
        fed = {key: tf.constant(column) for key, column in columns.items()}
        return {key: output.numpy() for key, output in signatures[name](**fed).items()}

    return run_signature


def scores(batching: Batching, columns: Columns) -> Any:
    answer = batching.predict("columnar_pair", columns)
    return answer if isinstance(answer, grpc.RpcError) else answer["score"]


def together(batching: Batching, run: Run, *requests: Pairs) -> list[Any]:
    """Sends requests at the same time; returns the scores or the RpcError of each."""
    columns = [request.columns(run) for request in requests]
    with ThreadPoolExecutor(len(requests)) as threads:
        return list(threads.map(lambda sent: scores(batching, sent), columns))


@pytest.mark.parametrize(
    "requests", [[one(0, 3), one(1, 3)], [five(0), five(1)], [one(0, 3), five(1)]]
)
def test_users_of_several_requests_are_refused(start, run, right, requests: list[Pairs]) -> None:  # noqa: F811
    with start(max_batch_size=sum(len(request.items) for request in requests)) as batching:
        answers = together(batching, run, *requests)
        for answer, request in zip(answers, requests, strict=True):
            answered = check(answer, request.expected(right))
            if batching.session:
                assert not answered
                assert JOINED in answer.details()


@pytest.mark.parametrize("request_", [one(1, 3), five(1)], ids=["one", "five"])
def test_a_padded_request_is_refused(start, run, right, request_: Pairs) -> None:  # noqa: F811
    with start(max_batch_size=8, timeout_seconds=0.01, allowed_batch_sizes=[4, 8]) as batching:
        (answer,) = together(batching, run, request_)
        answered = check(answer, request_.expected(right))
        assert answered is not bool(batching.session)


def test_of_many_requests_none_is_answered_wrongly(start, run, right) -> None:  # noqa: F811
    draw = random.Random(0)
    requests = [
        one(draw.randrange(len(USERS)), draw.randrange(len(ITEMS)))
        if draw.random() < 0.8
        else five(draw.randrange(9))
        for _ in range(200)
    ]
    columns = [request.columns(run) for request in requests]
    expected = [request.expected(right) for request in requests]
    with start(max_batch_size=8, timeout_seconds=0.002) as batching:
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda sent: scores(batching, sent), columns))
        answered = [check(a, e) for a, e in zip(answers, expected, strict=True)]
        assert any(answered)
        if batching.session:
            assert not all(answered)
