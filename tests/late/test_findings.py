"""Draws of trial requests, and findings from a tensor's values."""

from typing import Any

import numpy as np
import pytest
from colcast.export.graph._comparison import relative_difference
from colcast.export.graph._errors import ExportError
from colcast.export.graph._findings import REPEATS, Finding, RowKind, classify_user
from colcast.export.graph._requests import Request, Requests, without_a_value


class _Values:
    """A stand-in for a graph: the values of its tensor `t` per user, at several row counts."""

    def __init__(self, *users: Any) -> None:
        self._users = users

    def find(self) -> Finding:
        requests = [Request({"user": np.array([n])}, {}, {}) for n in range(len(self._users))]
        return classify_user(self, requests, [1e-5], ["t"])[1e-5]["t"]

    def __call__(self, columns: Any) -> dict[str, Any]:
        user = columns["user"]
        return {"t": np.asarray(self._users[user[0]](len(user)))}


ROW = np.array([[1.0, 2.0]])


@pytest.mark.parametrize(
    ("value", "kind", "axis"),
    [
        (lambda n: ROW.repeat(n, 0), RowKind.ROW, 0),
        (lambda n: np.tile(np.array([[1.0], [2.0], [3.0]]), (n, 1)), RowKind.ROW, 0),
        (lambda n: ROW.T.repeat(n, 1), RowKind.ROW, 1),
        (lambda n: np.array([[b"word"]], object).repeat(n, 0), RowKind.ROW, 0),
        (lambda n: np.full((n, 2), np.nan), RowKind.ROW, 0),
        (lambda n: ROW.repeat(n, 0) * (1 + 1e-7 * n), RowKind.ROW, 0),
        (lambda n: np.zeros((n, 0)), RowKind.ROW, 0),
        (lambda n: ROW, RowKind.CONSTANT, 0),
        (lambda n: np.float32(7), RowKind.CONSTANT, 0),
        (lambda n: n, RowKind.OTHER, 0),
        (lambda n: np.array([n, 2]), RowKind.OTHER, 0),
        (lambda n: np.arange(n), RowKind.OTHER, 0),
        (lambda n: np.array([1.0, 2.0, 3.0]).repeat(n), RowKind.OTHER, 0),
        (lambda n: ROW.repeat(n, 0) * (2.0 if n > 5 else 1.0), RowKind.OTHER, 0),
        (lambda n: ROW.repeat(n, 0).squeeze(), RowKind.OTHER, 0),
        (lambda n: np.zeros((0, 2)), RowKind.OTHER, 0),
    ],
)
def test_one_user(value: Any, kind: RowKind, axis: int) -> None:
    found = _Values(value).find()
    assert (found.kind, found.axis) == (kind, axis)
    assert max(REPEATS) > 5


def test_sizes_that_differ_between_users_are_left_open() -> None:
    found = _Values(*(lambda n, k=k: np.ones((n, k, 8)) for k in (3, 5))).find()
    assert found == Finding(RowKind.ROW, (1, None, 8))


def test_a_list_that_is_empty_for_one_user_keeps_its_values_for_another() -> None:
    empty, full = (lambda n: np.zeros(0)), (lambda n: np.tile([1.0, 2.0], n))
    for users in ((empty, full), (full, empty)):
        assert _Values(*users).find().kind is RowKind.ROW


def test_users_have_to_agree() -> None:
    found = _Values(lambda n: ROW, lambda n: ROW.repeat(n, 0)).find()
    assert found.kind is RowKind.OTHER
    assert "not for another" in found.reason


def test_relative_difference() -> None:
    expected = np.array([1.0, 100.0, 0.0, np.inf, np.nan, 1.0])
    given = np.array([1.1, 101.0, 0.1, np.inf, np.nan, np.nan])
    apart = relative_difference(expected, given, floor=2.0, noise=0.0)
    np.testing.assert_allclose(apart, [0.05, 0.01, 0.05, 0, 0, np.inf])


def test_relative_difference_leaves_noise_out() -> None:
    apart = relative_difference(
        np.array([1.0, 1.0]), np.array([1.1, 1.3]), 1.0, np.array([0.2, 0.2])
    )
    np.testing.assert_allclose(apart, [0, 0.1])


def test_words_are_equal_or_not() -> None:
    words, other = np.array([b"a", b"b"], object), np.array([b"a", b"c"], object)
    assert relative_difference(words, other, 0.0, 0.0).tolist() == [0.0, np.inf]


USER, ITEMS = ("id", "seen", "seen/length"), ("price",)


def _rows(count: int) -> dict[str, Any]:
    """Rows that differ in every column; list lengths cycle through 1, 2, 3."""
    lengths = np.arange(count) % 3 + 1
    return {
        "id": np.arange(count) * 10**9 + 7,
        "seen": np.where(np.arange(3) < lengths[:, None], 5, 0),
        "seen/length": lengths,
        "price": np.linspace(-1e6, 1e6, count, dtype=np.float32),
    }


def _requests(source: Any = _rows, run: Any = lambda columns: None) -> Requests:
    return Requests(source, USER, ITEMS, run, {"seen": "seen/length"})


def test_the_user_is_one_row_and_every_candidate_another() -> None:
    request = _requests().draw(4)
    assert all(len(column) == 1 for column in request.user.values())
    assert len(np.unique(request.items["price"])) == 4


def test_users_lists_come_without_the_padding_of_longer_ones() -> None:
    requests = _requests()
    for _ in range(20):
        user = requests.draw(5).user
        assert user["seen"].tolist() == [[5] * int(user["seen/length"][0])]


def test_numbers_are_small_in_every_second_request() -> None:
    requests = _requests()
    largest = [np.abs(requests.draw(5).items["price"]).max() for _ in range(4)]
    assert [price < 1 for price in largest] == [True, False, True, False]


def test_floats_that_never_differ_are_varied() -> None:
    requests = _requests(lambda count: _rows(count) | {"price": np.zeros(count, np.float32)})
    assert np.ptp(requests.draw(5).items["price"]) > 0


def test_empty_float_columns_stay_empty() -> None:
    requests = _requests(lambda count: _rows(count) | {"price": np.zeros((count, 0), np.float32)})
    assert requests.draw(5).items["price"].shape == (5, 0)


def test_repeated_has_the_user_on_each_row() -> None:
    request = _requests().draw(5)
    columns = request.repeated(3)
    assert columns["id"].tolist() == request.user["id"].tolist() * 3
    assert columns["price"].tolist() == request.items["price"][:3].tolist()
    assert request.once()["id"].shape == (1,)


def test_a_request_that_the_model_refuses_is_drawn_again() -> None:
    seen = []

    def run(columns: Any) -> None:
        seen.append(columns)
        if len(seen) < 3:
            raise ExportError("refused")

    request = _requests(run=run).draw(2)
    assert [len(columns["price"]) for columns in seen] == [1, 1, 1, 2]
    assert request.items["price"].tolist() == seen[-1]["price"].tolist()


def test_a_model_that_refuses_every_row_is_an_error() -> None:
    def run(columns: Any) -> None:
        raise ExportError("refused, as ever")

    with pytest.raises(ExportError, match="refused, as ever"):
        _requests(run=run).draw(2)


def test_features_without_a_value_are_found() -> None:
    def rows(count: int) -> dict[str, Any]:
        return _rows(count) | {
            "seen": np.zeros((count, 0), int),
            "seen/length": np.zeros(count, int),
        }

    requests = _requests(rows)
    drawn = [requests.draw(3) for _ in range(4)]
    assert without_a_value(drawn) == {"seen", "seen/length"}
