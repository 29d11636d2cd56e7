"""The last stage accepts only users of one request, in TensorFlow and through the server."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from ..models.ranker import ITEMS
from .conftest import Columns, Run

JOINED = "user_state_row_must_be_0_to_U_minus_1_of_one_request"
NO_USER = "row_to_user_must_be_0_to_U_minus_1"
AGES = np.arange(5) * 13


def _user(ages: Sequence[int]) -> Columns:
    words = np.array([[b"red", b"blue"]] * len(ages), object)
    columns = {"user_age": np.array(ages, np.int64), "user_words": words}
    return columns | {"user_words/length": np.full(len(ages), 2)}


def _items(count: int) -> Columns:
    items = ITEMS[:count]
    return {
        "item_id": np.array([item["item_id"] for item in items]),
        "item_price": np.array([item["item_price"] for item in items], np.float32),
    }


def _score(run: Run, users: int, items: int, **rows: Sequence[int]) -> Any:
    """Scores the first `items` items for the first `users` users."""
    states = run("columnar_user", _user(AGES[:users])) | run("columnar_item", _items(items))
    given = {key.replace("__", "/"): np.array(row, np.int64) for key, row in rows.items()}
    return run("columnar_pair", states | given)["score"]


@pytest.mark.parametrize(
    ("users", "rows"),
    [
        (1, [0]),
        (3, [0, 1, 2]),
        (3, [0]),  # the input's default, which no joined request has
        (5, [0, 1, 2, 3, 4]),
        (5, [0]),
    ],
)
@pytest.mark.parametrize("items", [1, 5])
def test_users_of_one_request_are_scored(
    rewritten: Run, users: int, rows: list[int], items: int
) -> None:
    whose = [(3 * row + 1) % users for row in range(items)]
    given = _score(rewritten, users, items, user_state__row=rows, row_to_user=whose)
    for row, user in enumerate(whose):
        late = rewritten("columnar_late", _user(AGES[[user]]) | _items(items))["score"]
        np.testing.assert_allclose(given[row], late[row], rtol=1e-5)


@pytest.mark.parametrize(
    "rows",
    [
        [0, 0],  # two requests that send the same user
        [0, 0, 0, 0, 0],  # one request, padded or with its state repeated
        [0, 1, 0, 1, 2],  # two requests of several users
        [0, 1, 2, 0, 0],  # one request of three users, padded
        [3, 4],  # the second half of a split request
        [1],  # one user, numbered like the second of several
        [1, 0],
    ],
)
def test_users_of_several_requests_are_refused(rewritten: Run, rows: list[int]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=JOINED):
        _score(rewritten, len(rows), len(rows), user_state__row=rows, row_to_user=[0] * len(rows))


@pytest.mark.parametrize("users", [1, 3])
@pytest.mark.parametrize("wrong", [-1, 3, 2**40])
def test_a_row_that_names_no_user_is_refused(rewritten: Run, users: int, wrong: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=NO_USER) as error:
        _score(rewritten, users, 4, row_to_user=[0, 0, wrong, 0])
    assert f"indices[2] = {wrong} is not in [0, {users})" in error.value.message
