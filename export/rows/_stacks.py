"""Rules for ops that concatenate or stack tensors."""

from dataclasses import replace
from typing import Any

from colcast.export.rows._facts import (
    Axis,
    Fact,
    Kind,
    axis,
    has_open,
    has_rows,
    is_counted,
    longest,
    sizes,
)
from colcast.export.rows._op import Mixes, Op, as_value, count, rule, together
from colcast.export.rows._shapes import STACKED, with_axes


@rule("ConcatV2")
def concat(op: Op) -> Fact:
    """Concatenates tensors."""
    *_, last = range(len(op.inputs))
    return joined_along(op, list(op.inputs[:last]), op.number(last))


@rule("Concat")
def concat_old(op: Op) -> Fact:
    """Concatenates tensors; the dimension is the first input."""
    return joined_along(op, list(op.inputs[1:]), op.number(0))


@rule("Pack")
def pack(op: Op) -> Fact:
    """Stacks tensors along a new dimension."""
    number = op.attribute("axis").i
    if any(fact.kind is Kind.SIZES for fact in op.inputs) and not op.axes(0):
        return sizes(entry for index in range(len(op.inputs)) for entry in op.entries(index))
    axes = op.axes(0)
    number %= len(axes) + 1
    if number == 0 and len(axes) == 1 and any(not fact.plain for fact in op.inputs):
        columns = _columns([with_axes(fact, 1, 1, [()]) for fact in op.inputs])
        return replace(columns, axes=(columns.axes or ())[::-1], mark=STACKED)
    made = [with_axes(fact, number, number, [()]) for fact in op.inputs]
    return _side_by_side(made, number)


def joined_along(op: Op, facts: list[Fact], number: int) -> Fact:
    """Tensors concatenated along a dimension."""
    if any(fact.kind is Kind.SIZES for fact in facts):
        entries: list[Axis | None] = []
        first = op.inputs.index(facts[0])
        for index in range(first, first + len(facts)):
            entries += op.entries(index)
        return sizes(entries)
    ends = [fact for fact in facts if fact.kind is Kind.SPLITS]
    if ends:
        zeros, *rest = facts
        if len(facts) == 2 and rest[0].mark and rest[0].mark[0] == "ends" and zeros.uniform == 0:
            lists = rest[0].mark[1]
            return Fact(Kind.SPLITS, ((f"splits:{lists}",),), mark=("splits", lists))
        raise Mixes("splits are concatenated")
    return _side_by_side(facts, number)


def _side_by_side(facts: list[Fact], number: int) -> Fact:
    shapes = [fact.axes for fact in facts if fact.axes is not None]
    if len(shapes) != len(facts) or len(set(map(len, shapes))) != 1:
        raise Mixes("the rank of an input is not known")
    rank_ = len(shapes[0])
    number %= rank_
    if number == rank_ - 1 and any(not fact.plain for fact in facts):
        return _columns(facts)
    facts = [as_value(fact) for fact in facts]
    along = [axes[number] for axes in shapes]
    if has_rows(along) or longest(along):
        if len(facts) == 1:
            return facts[0]
        raise Mixes("rows are put behind one another" if has_rows(along) else "lists are joined")
    inner = [tuple(a for n, a in enumerate(axes) if n != number) for axes in shapes]
    same = max(inner, key=lambda axes: len([a for a in axes if a]))
    for each in inner:
        pairs = zip(each, same, strict=True)
        if any(a != b and not (has_open(a) or has_open(b)) for a, b in pairs):
            raise Mixes("rows of one input meet others of another")
    width = axis(f"size:{len(facts)} side by side")
    if all(map(is_counted, along)):
        width = axis(sum(map(count, along)))
    made = (*same[:number], width, *same[number:])
    kind, lengths = together(facts)
    fills = tuple(
        _one({fact.fill(n) for fact in facts}) if n != number and longest([each]) else None
        for n, each in enumerate(made)
    )
    uniform = _one({fact.uniform for fact in facts})
    known = fills if any(fill is not None for fill in fills) else ()
    return Fact(kind, made, lengths, known, uniform)


def _columns(facts: list[Fact]) -> Fact:
    """Concatenates columns of positions and plain columns."""
    places: list[Axis | None] = []
    for fact in facts:
        width = fact.axes[-1] if fact.axes else ()
        if not is_counted(width):
            raise Mixes("positions are put beside columns of unknown number")
        places += list(fact.places) if fact.places else [fact.refers] * count(width)
    inner = {fact.axes[:-1] for fact in facts if fact.axes and fact.kind is not Kind.FIXED}
    if len(inner) != 1:
        raise Mixes("positions of different rows are put side by side")
    lengths = frozenset[str]().union(*(fact.lengths for fact in facts))
    return Fact(Kind.ROWS, (*inner.pop(), axis(len(places))), lengths, places=tuple(places))


def _one(values: set[Any]) -> Any:
    return next(iter(values)) if len(values) == 1 else None
