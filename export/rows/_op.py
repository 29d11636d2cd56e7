"""A node as rules see it, the table of rules, and dimensions that meet."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from colcast.export.graph._nodes import NodeDef
from colcast.export.rows._facts import (
    Axes,
    Axis,
    Fact,
    Mixes,
    aligned,
    dim,
    flat,
    has_rows,
    lists_in,
    names,
    width,
)


class Op:
    """A node.

    Attributes:
        name: its name.
        type: its op.
        ins: the facts about its inputs.
        operation: the tf.Operation.
        origins: for each input, the tensor that it has the entries of, in the same order.
    """

    def __init__(
        self,
        node: NodeDef,
        operation: Any,
        ins: Sequence[Fact],
        value: Callable[[int], Any],
        origins: Sequence[str],
    ) -> None:
        self.name, self.type, self.ins = node.name, node.op, ins
        self.operation, self.value, self.origins = operation, value, origins

    def attr(self, name: str) -> Any:
        return self.operation.get_attr(name)

    @property
    def outputs(self) -> int:
        return len(self.operation.outputs)

    def numbers(self, index: int) -> list[int]:
        """Input `index` as numbers."""
        found = self.value(index)
        if found is None:
            raise Mixes(f"input {index} is unknown before a run")
        return [int(number) for number in np.reshape(found, [-1])]

    def entries(self, index: int) -> list[Axis | None]:
        """Input `index`, a shape or part of one, as dimensions; None for -1."""
        if self.ins[index].kind == "size":
            return list(self.ins[index].sizes)
        return [None if number < 0 else dim(number) for number in self.numbers(index)]

    def axis(self, index: int, number: int, more: int = 0) -> int:
        """The position of a dimension of input `index`, which may be counted from the last."""
        rank = len(self.ins[index].axes) + more
        if not -rank <= number < rank:
            raise Mixes(f"input {index} has no dimension {number}")
        return number % rank

    def open(self, number: object = "") -> Axis:
        """A size that is unknown but the same in every run."""
        return (f"?{self.name}/{number}",)

    def declared(self, output: int, number: int) -> Axis:
        """A dimension of an output that no row or list determines."""
        size = self.operation.outputs[output].shape[number]
        return self.open(number) if size is None else dim(size)


Rule = Callable[[Op], "Fact | list[Fact]"]
RULES: dict[str, Rule] = {}
"""How each op treats rows; an op without a rule mixes them, unless all its inputs are fixed."""


def rule(*types: str) -> Callable[[Rule], Rule]:
    """Registers the decorated function as the rule of some op types."""

    def register(function: Rule) -> Rule:
        for each in types:
            if each in RULES:
                raise ValueError(f"op {each!r} has two rules")
            RULES[each] = function
        return function

    return register


def broadcast(op: Op, one: Axes, other: Axes) -> tuple[Axes, frozenset[str]]:
    """The dimensions of an op that repeats those of size 1, and lists that may decide which."""
    made: list[Axis] = []
    pads: frozenset[str] = frozenset()
    for number in range(1, max(len(one), len(other)) + 1):
        a, b = (axes[-number] if number <= len(axes) else () for axes in (one, other))
        if a == b or not b:
            made.append(a)
        elif not a:
            made.append(b)
        elif has_rows(a) or has_rows(b):
            if not aligned(a, b):
                raise Mixes(meeting(a, b))
            made.append(a)
        elif lists := lists_in([a, b]):
            pads |= lists
            made.append(width(lists, f"{op.name}/{number}"))
        elif names([a]) and names([b]):
            made.append(op.open(number))
        elif names([a]) or names([b]):
            made.append(b if names([a]) else a)
        else:
            raise Mixes("its inputs do not fit together")
    return tuple(reversed(made)), pads


def meeting(one: Axis, other: Axis) -> str:
    """Why rows of two dimensions may differ."""
    lists = [name.partition(":")[2] for name in names([one, other]) if name.startswith("elements:")]
    lists = [name.partition("\x1f")[0].lstrip("?") for name in lists]
    if len(set(lists)) == 2:
        return f"cannot tell whether {lists[0]} and {lists[1]} are equally long"
    return "different rows meet"


def equal(one: Axis, other: Axis) -> tuple[Axis, frozenset[str]]:
    """The size of two dimensions that TensorFlow demands to be equal, and lists that decide it."""
    if aligned(one, other):
        return one, frozenset()
    if has_rows(one) or has_rows(other):
        raise Mixes(meeting(one, other))
    known = other if names([one]) and not names([other]) else one
    return known, lists_in([one, other])


def same_shape(facts: Sequence[Fact], but: int) -> tuple[list[Axis], frozenset[str]]:
    """The dimensions, all but one, of tensors that have the same ones."""
    rest: list[Axis] = []
    pads: frozenset[str] = frozenset()
    for fact in facts:
        own = [each for number, each in enumerate(fact.axes) if number != but]
        if not rest:
            rest = own
        if len(own) != len(rest):
            raise Mixes("its inputs do not fit together")
        for number, each in enumerate(own):
            rest[number], more = equal(rest[number], each)
            pads |= more
    return rest, pads


def within(axes: Sequence[Axis]) -> frozenset[str]:
    """Lists whose width moves entries of these dimensions: not the slowest factors."""
    return lists_in(each[1:] for each in axes if not has_rows(each))


def count(axis: Axis) -> int:
    """A size that is a number."""
    if names([axis]):
        raise Mixes("the size of a dimension is unknown before a run")
    return int(flat([axis])[0]) if axis else 1
