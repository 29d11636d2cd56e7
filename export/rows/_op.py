"""The table of rules, the node that a rule gets, and checks and dimensions that rules share."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from colcast.export.rows._facts import (
    Axes,
    Axis,
    Fact,
    Mixes,
    derived,
    dim,
    flat,
    has_rows,
    lists_in,
    names,
    paired,
)


@dataclass(frozen=True)
class Op:
    """A node.

    Attributes:
        operation: the tf.Operation.
        ins: the facts about its inputs.
        value: returns an input's numbers if they are the same in every run; else None.
        origins: for each input, the tensor that it has the entries of, in the same order.
    """

    operation: Any
    ins: Sequence[Fact]
    value: Callable[[int], Any]
    origins: Sequence[str]

    @property
    def name(self) -> str:
        return str(self.operation.name)

    @property
    def type(self) -> str:
        return str(self.operation.type)

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


Rule = Callable[[Op], "Fact | list[Fact]"]
RULES: dict[str, Rule] = {}
"""How each op treats rows; an op without a rule mixes them, unless all its inputs are fixed."""


def rule(*types: str) -> Callable[[Rule], Rule]:
    """Registers the decorated function as the rule of some op types."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(types, function))
        return function

    return register


def require(holds: object, why: str) -> None:
    if not holds:
        raise Mixes(why)


def apart(*axes: Axis | None) -> frozenset[str]:
    """Demands dimensions without rows; returns the lists that determine them."""
    require(not has_rows(*axes), "it works along rows, so it combines or moves them")
    return lists_in(axes)


def fixed(facts: Iterable[Fact]) -> frozenset[str]:
    """Demands values that no row affects; returns lists that may."""
    facts = [fact.plain() for fact in facts]
    require(all(fact.kind == "fixed" for fact in facts), "one row's value affects other rows")
    return frozenset[str]().union(*(fact.pads for fact in facts))


def equal(one: Axis, other: Axis) -> tuple[Axis, frozenset[str]]:
    """The size of two dimensions that TensorFlow demands to be equal, and lists that decide it."""
    if one == other:
        return one, frozenset()
    if has_rows(one) or has_rows(other):
        return one, paired(one, other)
    known = other if names([one]) and not names([other]) else one
    return known, lists_in([one, other])


def broadcast(op: Op, shapes: Iterable[Axes]) -> tuple[Axes, frozenset[str]]:
    """The dimensions of an op that repeats those of size 1, and lists that may decide which."""
    made, pads = list[Axis](), frozenset[str]()  # the last dimension first
    for axes in shapes:
        for number, b in enumerate(reversed(axes)):
            made += [()] * (number == len(made))
            a = made[number]
            made[number], more = equal(a or b, b or a)
            if a != b and names([a]) and names([b]) and not has_rows(a):
                made[number] = op.derived([a, b], number)  # either may be 1
            pads |= more
    return tuple(reversed(made)), pads


def count(axis: Axis) -> int:
    """A size that is a number."""
    require(not names([axis]), "the size of a dimension is unknown before a run")
    return int(flat([axis])[0]) if axis else 1
