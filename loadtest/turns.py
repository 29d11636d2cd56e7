"""Things that are compared take turns: whatever else the machine does then hits all alike."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Thing = TypeVar("Thing")
Measured = TypeVar("Measured")


def in_turn(
    things: Sequence[Thing], measure: Callable[[Thing, int], Measured], rounds: int
) -> list[list[Measured]]:
    """Measures everything once per round; who is first changes from round to round.

    Args:
      things: what is compared.
      measure: (thing, number of the round) -> what was measured.
      rounds: how often.

    Returns:
      A list per thing, in the order of `things`, with an entry per round.
    """
    measured: list[list[Measured]] = [[] for _ in things]
    for number in range(rounds):
        for position in range(len(things)):
            place = (number + position) % len(things)
            measured[place].append(measure(things[place], number))
    return measured
