"""Rules for ops that read or change dimensions without reordering entries."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
from colcast.export.rows._facts import (
    Axes,
    Axis,
    Fact,
    Kind,
    axis,
    displaced,
    fixed,
    has_open,
    longest,
    sizes,
)
from colcast.export.rows._op import Mixes, Op, as_value, rule

STACKED = ("columns", "one below the other")
"""The mark of a matrix of positions that must be transposed before use."""
LAID_OUT = "the run's sizes are held in more than one dimension"


@rule("Shape", "ShapeN")
def shape(op: Op) -> list[Fact]:
    """Outputs the dimensions as numbers."""
    return [sizes(op.axes(index)) for index in range(op.outputs)]


@rule("BroadcastArgs")
def broadcast_args(op: Op) -> Fact:
    """Computes the dimensions of an op's result from the shapes of two inputs."""
    shapes = [op.entries(index)[::-1] for index in (0, 1)]
    made = []
    for one, other in zip_longest(*shapes, fillvalue=()):
        if one != other and () not in (one, other):
            raise Mixes("it is unknown which of two dimensions has size 1")
        made.append(one or other)
    return sizes(made[::-1])


@rule("Size")
def size(op: Op) -> Fact:
    return sizes([axis(*(factor for each in op.axes(0) for factor in each))], scalar=True)


@rule("Rank")
def rank(op: Op) -> Fact:
    return fixed((), np.array(len(op.axes(0))))


@rule("Reshape")
def reshape(op: Op) -> Fact:
    """Changes the dimensions; the entries keep their order."""
    return reshaped(op.inputs[0], op.axes(0), op.entries(1))


@rule("ExpandDims")
def expand_dims(op: Op) -> Fact:
    fact, number = op.inputs[0], op.axis_of(0, op.number(1), more=1)
    if fact.kind is Kind.SIZES:
        if op.axes(0):
            raise Mixes(LAID_OUT)
        return replace(fact, axes=(axis(len(fact.sizes or ())),))
    return with_axes(fact, number, number, [()])


@rule("Squeeze")
def squeeze(op: Op) -> Fact:
    fact, axes = op.inputs[0], op.axes(0)
    numbers = [op.axis_of(0, number) for number in op.attribute("squeeze_dims").list.i]
    if not numbers:  # a list is dropped if its longest has one value
        numbers = [number for number, each in enumerate(axes) if not each]
        fact = replace(fact, lengths=fact.lengths | longest(axes))
    if any(axes[number] and not has_open(axes[number]) for number in numbers):
        raise Mixes("a dimension that may be larger than 1 is dropped")
    if fact.kind is Kind.SIZES:
        return sizes(fact.sizes or (), scalar=True)
    kept = [each for number, each in enumerate(axes) if number not in numbers]
    of_one = tuple(() if number in numbers else each for number, each in enumerate(axes))
    return reshaped(fact, of_one, list(kept))


@rule("Transpose")
def transpose(op: Op) -> Fact:
    fact, order = op.inputs[0], op.numbers(1)
    axes = op.axes(0)
    if fact.mark == STACKED and order == [1, 0]:
        return replace(fact, axes=axes[::-1], mark=None)
    fact = as_value(fact)
    fills = tuple(fact.fills[number] for number in order) if fact.fills else ()
    return fact.changed(
        axes=tuple(axes[number] for number in order), fills=fills, uniform=fact.uniform
    )


def reshaped(fact: Fact, axes: Axes, wanted: Sequence[Axis | None]) -> Fact:
    """The fact of a reshaped tensor; None in `wanted` stands for any size."""
    if fact.kind is Kind.SIZES:
        scalar = len(wanted) == 0
        return sizes(fact.sizes or (), scalar=scalar)
    made = _regrouped([factor for each in axes for factor in each], list(wanted))
    places = fact.places
    if places is not None:
        if made and made[-1] == axes[-1]:
            return replace(fact, axes=made, fills=(), mark=None)
        if axes[-1]:
            raise Mixes("positions are reshaped")
        return replace(fact, axes=made, places=None, refers=places[0], fills=(), mark=None)
    lengths = fact.lengths | displaced(made)
    fills = _fills_of(fact, axes, made)
    return replace(fact, axes=made, lengths=lengths, fills=fills, value=None)


def _fills_of(fact: Fact, axes: Axes, made: Axes) -> tuple[float | None, ...]:
    """The padding of lists along the dimensions that remain."""
    if not fact.fills:
        return ()
    alone = {each: number for number, each in enumerate(axes) if axes.count(each) == 1}
    fills = [
        fact.fills[alone[each]] if each in alone and made.count(each) == 1 else None
        for each in made
    ]
    return tuple(fills)


def _regrouped(factors: list[Any], wanted: list[Axis | None]) -> Axes:
    """Groups the factors, slowest first, into dimensions of the wanted sizes.

    Raises:
        Mixes: an entry would belong to several rows.
    """
    if wanted.count(None) > 1:
        raise Mixes("several sizes are unknown before a run")
    if None not in wanted:
        factors = _needed(factors, wanted)
    front: list[Axis] = []
    for size_ in wanted:
        if size_ is None:
            break
        group, factors = _take_factors(factors, size_)
        front.append(group)
    else:
        if axis(*factors):
            raise Mixes("it is unknown which rows the entries belong to")
        return tuple(front)
    behind: list[Axis] = []
    for size_ in reversed(wanted[len(front) + 1 :]):
        assert size_ is not None
        group, rest = _take_factors(factors[::-1], size_)
        factors = rest[::-1]
        behind.append(group[::-1])
    return (*front, axis(*factors), *reversed(behind))


def _needed(factors: list[Any], wanted: Sequence[Axis | None]) -> list[Any]:
    """Drops the factors that must be 1: unknown fixed sizes that are not wanted.

    With any other size there would be more entries than wanted, and the op would fail.
    """
    named = [factor for each in wanted for factor in each or ()]
    return [factor for factor in factors if factor in named or not has_open((factor,))]


def _take_factors(factors: list[Any], size_: Axis) -> tuple[Axis, list[Any]]:
    """Splits `factors` into a leading group whose product is `size_`, and the rest."""
    left, rest, group = list(size_), list(factors), []
    while left:
        if not rest:
            raise Mixes("it is unknown which rows the entries belong to")
        factor = rest.pop(0)
        if factor in left:
            left.remove(factor)
            group.append(factor)
            continue
        numbers = [f for f in left if isinstance(f, int)]
        if not isinstance(factor, int) or not numbers:
            raise Mixes("rows trade places with another dimension")
        number = numbers[0]
        left.remove(number)
        if number % factor == 0:
            group.append(factor)
            left += [number // factor]
        elif factor % number == 0:
            group.append(number)
            rest.insert(0, factor // number)
        else:
            raise Mixes("a row's entries are divided among several rows")
    return axis(*group), rest


def with_axes(fact: Fact, begin: int, end: int, axes: Sequence[Axis]) -> Fact:
    """Replaces the dimensions from `begin` to `end` with `axes`; entries stay the same.

    The padding values of lists move with their dimensions.
    """
    old = fact.axes or ()
    fills = fact.fills
    if fills:
        fills = (*fills[:begin], *[None] * len(axes), *fills[end:])
    places, refers = fact.places, fact.refers
    if places is not None and (begin >= len(old) or end == len(old) > begin):
        raise Mixes("positions are reshaped")
    return replace(
        fact,
        axes=(*old[:begin], *axes, *old[end:]),
        fills=fills,
        places=places,
        refers=refers,
        value=None,
    )
