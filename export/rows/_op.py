"""The table of rules, the node that a rule gets, and checks and dimensions that rules share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from colcast.export.rows._facts import (
    Axes,
    Axis,
    Fact,
    Mixes,
    dim,
    flat,
    has_rows,
    lists_in,
    names,
    paired,
    width,
)


class Op:
    """A node.

    Attributes:
        name: its name.
        type: its op.
        outputs: the number of its outputs.
        ins: the facts about its inputs.
        operation: the tf.Operation.
        value: returns an input's numbers if they are the same in every run; else None.
        origins: for each input, the tensor that it has the entries of, in the same order.
    """

    def __init__(
        self,
        operation: Any,
        ins: Sequence[Fact],
        value: Callable[[int], Any],
        origins: Sequence[str],
    ) -> None:
        self.name, self.type, self.outputs = operation.name, operation.type, len(operation.outputs)
        self.operation, self.ins, self.value, self.origins = operation, ins, value, origins

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

    def derived(self, axes: Iterable[Axis | None], number: object = "") -> Axis:
        """A size that only these dimensions determine, if it is not a number."""
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


def derived(axes: Iterable[Axis | None], expression: str) -> Axis:
    lists = lists_in(axes := list(axes))
    return width(lists, expression) if lists else (f"?{expression}",)


def broadcast(op: Op, one: Axes, other: Axes) -> tuple[Axes, frozenset[str]]:
    """The dimensions of an op that repeats those of size 1, and lists that may decide which."""
    made: list[Axis] = []
    pads: frozenset[str] = frozenset()
    for number in range(1, max(len(one), len(other)) + 1):
        a, b = (axes[-number] if number <= len(axes) else () for axes in (one, other))
        if a == b or not a or not b:
            made.append(a or b)
        elif has_rows(a) or has_rows(b):
            made.append(a)
            pads |= paired(a, b)
        elif lists_in([a, b]) or (names([a]) and names([b])):
            pads |= lists_in([a, b])
            made.append(op.derived([a, b], number))
        else:
            require(names([a]) or names([b]), "its inputs do not fit together")
            made.append(b if names([a]) else a)
    return tuple(reversed(made)), pads


def equal(one: Axis, other: Axis) -> tuple[Axis, frozenset[str]]:
    """The size of two dimensions that TensorFlow demands to be equal, and lists that decide it."""
    if one == other:
        return one, frozenset()
    if has_rows(one) or has_rows(other):
        return one, paired(one, other)
    known = other if names([one]) and not names([other]) else one
    return known, lists_in([one, other])


def same_shape(facts: Sequence[Fact], but: int) -> tuple[list[Axis], frozenset[str]]:
    """The dimensions, all but one, of tensors that have the same ones."""
    shapes = [[each for number, each in enumerate(fact.axes) if number != but] for fact in facts]
    rest, pads = shapes[0], frozenset[str]()
    for shape in shapes:
        met = [equal(a, b) for a, b in zip(rest, shape, strict=True)]
        rest = [size for size, _ in met]
        pads = pads.union(*(lists for _, lists in met))
    return rest, pads


def count(axis: Axis) -> int:
    """A size that is a number."""
    require(not names([axis]), "the size of a dimension is unknown before a run")
    return int(flat([axis])[0]) if axis else 1
