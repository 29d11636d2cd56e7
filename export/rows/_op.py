"""The table of rules, and the node that a rule gets."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from colcast.export.rows._facts import Axis, Fact, derived, dim, equal, has_rows, names, require


@dataclass(frozen=True)
class Op:
    """A node.

    Attributes:
        name, type: its name and its op.
        operation: the tf.Operation.
        ins: the facts about its inputs.
        value: returns an input's numbers if they are the same in every run; else None.
    """

    name: str
    type: str
    operation: Any
    ins: Sequence[Fact]
    value: Callable[[int], Any]

    def attr(self, name: str) -> Any:
        return self.operation.get_attr(name)

    def numbers(self, index: int) -> list[int]:
        """Input `index` as numbers."""
        found = self.value(index)
        require(found is not None, f"input {index} is unknown before a run")
        return [int(number) for number in np.reshape(found, [-1])]

    def entries(self, index: int) -> list[Axis | None]:
        """Input `index`, a shape or part of one, as dimensions; None for -1."""
        if self.ins[index].kind == "size":
            return list(self.ins[index].sizes)
        return [None if number < 0 else dim(number) for number in self.numbers(index)]

    def size(self, index: int) -> Axis:
        """Input `index` as one size that is known."""
        (size,) = self.entries(index)
        require(size is not None, f"input {index} is a size that is unknown")
        return size or ()

    def axis(self, index: int, number: int, more: int = 0) -> int:
        """The position of a dimension of input `index`, which may be counted from the last."""
        rank = len(self.ins[index].axes) + more
        require(-rank <= number < rank, f"input {index} has no dimension {number}")
        return number % rank

    def derived(self, axes: Iterable[Axis | None] = (), number: object = "") -> Axis:
        """A size that this op computes from these dimensions only."""
        return derived(axes, f"{self.name}/{number}")

    def broadcast(self, shapes: Iterable[Sequence[Axis]]) -> tuple[Sequence[Axis], frozenset[str]]:
        """The dimensions after those of size 1 are repeated, and lists that may decide which."""
        made, pads = list[Axis](), frozenset[str]()  # the last dimension first
        for axes in shapes:
            for number, b in enumerate(reversed(axes)):
                made += [()] * (number == len(made))
                a = made[number]
                made[number], more = equal(a or b, b or a)
                if a != b and names([a]) and names([b]) and not has_rows(a):
                    made[number] = self.derived([a, b], number)  # either may be 1
                pads |= more
        return tuple(reversed(made)), pads


Rule = Callable[[Op], "Fact | list[Fact]"]
RULES: dict[str, Rule] = {}
"""How each op treats rows; an op without a rule mixes them, unless all its inputs are fixed."""


def rule(*types: str) -> Callable[[Rule], Rule]:
    """Registers the decorated function as the rule of some op types."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(types, function))
        return function

    return register
