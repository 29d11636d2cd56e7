"""The cache hits that recorded requests would have had."""

from colcast.export.cut._stages_report import Reuse, count_reuse


def _row(user: bytes, item: bytes, price: bytes = b"1") -> dict[str, bytes]:
    return {"user": user, "item": item, "price": price}


def test_counts_users_per_request_and_items_per_row() -> None:
    requests = [
        [_row(b"ann", b"tea"), _row(b"ann", b"ham")],
        [_row(b"bob", b"tea")],
        [_row(b"ann", b"tea"), _row(b"ann", b"jam")],
    ]
    reuse = count_reuse(requests, ["user"], ["item", "price"])
    assert (reuse.requests, reuse.users_found) == (3, 1)
    assert (reuse.rows, reuse.items_found) == (5, 2)


def test_a_missing_feature_is_a_separate_value() -> None:
    requests = [[{"user": b"ann", "item": b"tea"}], [_row(b"ann", b"tea")]]
    assert count_reuse(requests, ["user"], ["item", "price"]).items_found == 0


def test_nothing_recorded() -> None:
    assert count_reuse([], ["user"], ["item"]) == Reuse(0, 0, 0, 0)
