"""What is compared takes turns."""

from colcast.loadtest.measure.run import in_turn


def test_who_is_first_changes_from_round_to_round():
    order: list[tuple[str, int]] = []
    in_turn("abc", lambda thing, number: order.append((thing, number)), rounds=3)
    assert order == [
        *[("a", 0), ("b", 0), ("c", 0)],
        *[("b", 1), ("c", 1), ("a", 1)],
        *[("c", 2), ("a", 2), ("b", 2)],
    ]


def test_results_are_in_the_order_of_the_things_and_rounds():
    found = in_turn("ab", lambda thing, number: f"{thing}{number}", rounds=2)
    assert found == [["a0", "a1"], ["b0", "b1"]]
