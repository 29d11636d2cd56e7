"""A node as rules see it, and the table of rules, which the decorator `rule` fills.

An op without a rule mixes rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from colcast.export.rows._facts import (
    Axes,
    Axis,
    Fact,
    Kind,
    axis,
    has_rows,
    is_counted,
    is_of_rows,
    labels,
    longest,
    mixed,
)

Rule = Callable[["Op"], "Fact | Sequence[Fact]"]
RULES: dict[str, Rule] = {}
"""How each op treats rows. An op without a rule mixes them, unless no row affects its inputs."""

TABLE = object()
"""A placeholder for a table among the entries passed to `Op.compute`."""


class Mixes(Exception):
    """An op mixes rows, or may do so; the message says how."""


@dataclass(frozen=True)
class Op:
    """One node.

    Attributes:
        name: its name.
        type: its op type.
        inputs: facts about the tensors that it reads.
        attributes: AttrValues by name, with the op's defaults where the node has none.
        outputs: number of its output tensors.
        sources: names of its input tensors.
        value_of: returns input i as numbers if they are known before a run, else None.
        compute: returns the op's result for one entry of each input; None if that fails.
        shape_of: returns the shape of output i declared in the graph, a list with None for unknown
            sizes; None for an unknown rank.
        of_one_row: returns a row's entries of input i, [...], if they are the same in all rows of
            all runs; None if that is unknown.
    """

    name: str
    type: str
    inputs: Sequence[Fact]
    attributes: Any
    outputs: int
    sources: Sequence[str]
    value_of: Callable[[int], Any]
    compute: Callable[[Sequence[Any]], Any]
    shape_of: Callable[[int], Sequence[int | None] | None]
    of_one_row: Callable[[int], Any]

    def attribute(self, name: str) -> Any:
        return self.attributes[name]

    def number(self, index: int) -> int:
        """Input `index` as a number known before a run."""
        value = self.value_of(index)
        if value is None or np.size(value) != 1:
            raise Mixes(f"input {index} is unknown before a run")
        return int(np.reshape(value, []))

    def numbers(self, index: int) -> list[int]:
        """Input `index` as numbers known before a run."""
        value = self.value_of(index)
        if value is None:
            raise Mixes(f"input {index} is unknown before a run")
        return [int(number) for number in np.reshape(value, [-1])]

    def axes(self, index: int) -> Axes:
        found = self.inputs[index].axes
        if found is None:
            raise Mixes(f"the rank of input {index} is unknown")
        return found

    def axis_of(self, index: int, number: int, more: int = 0) -> int:
        """The position of a dimension of input `index`; a negative `number` counts from the end."""
        rank = len(self.axes(index)) + more
        if not -rank <= number < rank:
            raise Mixes(f"input {index} has no dimension {number}")
        return number % rank

    def entries(self, index: int) -> list[Axis | None]:
        """Input `index`, a shape or part of one, as dimensions; None for any size (-1)."""
        fact = self.inputs[index]
        if fact.kind is Kind.SIZES and fact.sizes is not None:
            return list(fact.sizes)
        if fact.kind is Kind.FIXED and not fact.lengths and self.value_of(index) is None:
            (width,) = fact.axes or ((),)
            name = self.sources[index]
            return [(f"size:{name}/{number}",) for number in range(count(width))]
        return [None if size < 0 else axis(size) for size in self.numbers(index)]


def count(each: Axis) -> int:
    """The number of entries that a dimension has in every run.

    Raises:
        Mixes: the number depends on the run.
    """
    if not is_counted(each):
        raise Mixes("the size of a dimension is unknown before a run")
    return int(each[0]) if each else 1


def rule(*types: str) -> Callable[[Rule], Rule]:
    """Registers the decorated function as the rule of some op types."""

    def register(function: Rule) -> Rule:
        for each in types:
            if each in RULES:
                raise ValueError(f"op {each!r} has two rules")
            RULES[each] = function
        return function

    return register


def as_value(fact: Fact) -> Fact:
    """The fact of a tensor whose entries are used as values, not as positions or sizes.

    Raises:
        Mixes: a row's number, or the number of rows, would become a value.
    """
    if fact.kind is Kind.SIZES:
        found = fact.sizes or ()
        if fact.sizes is None or None in found or has_rows(found):
            raise Mixes("the number of rows is used as a value")
        return Fact(Kind.FIXED, fact.axes, fact.lengths | longest(found))
    if fact.kind is Kind.SPLITS:
        raise Mixes("the number of elements of other rows is used as a value")
    if not fact.plain:
        raise Mixes("the position of a row is used as a value")
    return fact


def together(facts: Sequence[Fact]) -> tuple[Kind, frozenset[str]]:
    """The kind of values computed from all these tensors, and the lists that affect them."""
    kind = Kind.ROWS if any(fact.kind is Kind.ROWS for fact in facts) else Kind.FIXED
    return kind, frozenset().union(*(fact.lengths for fact in facts))


def checked(name: str, type_: str, fact: Fact) -> Fact:
    """Returns the fact, or MIXED unless the rows it depends on are in one dimension."""
    if fact.kind is Kind.ROWS and fact.axes is not None and not has_rows(fact.axes):
        return mixed(f"{type_} ({name}): its output depends on rows but has none")
    if sum(map(is_of_rows, labels(fact.axes or ()))) > 1:
        return mixed(f"{type_} ({name}): every row is combined with every other")
    return fact
