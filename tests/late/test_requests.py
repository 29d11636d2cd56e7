"""How trial requests are drawn from a source of rows."""

from typing import Any

import numpy as np
import pytest
from colcast.export.graph._errors import ExportError
from colcast.export.graph._requests import Requests, without_a_value

USER, ITEMS = ("id", "seen", "seen/length"), ("price",)


def _rows(count: int) -> dict[str, Any]:
    """Rows that differ in every column; lists of 1, 2, 3, 1, ... values."""
    lengths = np.arange(count) % 3 + 1
    return {
        "id": np.arange(count) * 10**9 + 7,
        "seen": np.where(np.arange(3) < lengths[:, None], 5, 0),
        "seen/length": lengths,
        "price": np.linspace(-1e6, 1e6, count, dtype=np.float32),
    }


def _requests(source: Any = _rows, run: Any = lambda columns: None) -> Requests:
    return Requests(source, USER, ITEMS, run)


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


def test_floats_that_never_differ_are_made_to() -> None:
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


def test_a_model_that_refuses_all_is_an_error() -> None:
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
