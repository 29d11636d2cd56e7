"""Rules for ops that concatenate, stack or repeat tensors."""

from dataclasses import replace
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
    has_rows,
    is_counted,
    longest,
    same_size,
    sizes,
)
from colcast.export.rows._op import Mixes, Op, as_value, count, rule, together
from colcast.export.rows._shapes import STACKED, with_axes


@rule("ConcatV2")
def concat(op: Op) -> Fact:
    *_, last = range(len(op.inputs))
    return joined_along(op, list(op.inputs[:last]), op.number(last))


@rule("Concat")
def concat_old(op: Op) -> Fact:
    """Like `concat`, with the dimension as the first input."""
    return joined_along(op, list(op.inputs[1:]), op.number(0))


@rule("Pack")
def pack(op: Op) -> Fact:
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
    """The fact of tensors concatenated along a dimension."""
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
        raise Mixes("the rank of an input is unknown")
    rank_ = len(shapes[0])
    number %= rank_
    if number == rank_ - 1 and any(not fact.plain for fact in facts):
        return _columns(facts)
    facts = [as_value(fact) for fact in facts]
    along = [axes[number] for axes in shapes]
    if has_rows(along) or longest(along):
        if len(facts) == 1:
            return facts[0]
        raise Mixes("rows are concatenated" if has_rows(along) else "lists are concatenated")
    inner = [tuple(a for n, a in enumerate(axes) if n != number) for axes in shapes]
    same = max(inner, key=lambda axes: len([a for a in axes if a]))
    for each in inner:
        pairs = zip(each, same, strict=True)
        if any(a != b and not (has_open(a) or has_open(b)) for a, b in pairs):
            raise Mixes("rows of different inputs may not match")
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
    """Concatenates columns of positions with columns of plain values."""
    places: list[Axis | None] = []
    for fact in facts:
        width = fact.axes[-1] if fact.axes else ()
        if not is_counted(width):
            raise Mixes("positions are concatenated with an unknown number of columns")
        places += list(fact.places) if fact.places else [fact.refers] * count(width)
    inner = {fact.axes[:-1] for fact in facts if fact.axes and fact.kind is not Kind.FIXED}
    if len(inner) != 1:
        raise Mixes("positions of different rows are concatenated")
    lengths = frozenset[str]().union(*(fact.lengths for fact in facts))
    return Fact(Kind.ROWS, (*inner.pop(), axis(len(places))), lengths, places=tuple(places))


def _one(values: set[Any]) -> Any:
    return next(iter(values)) if len(values) == 1 else None


@rule("Tile")
def tile(op: Op) -> Fact:
    fact = op.inputs[0]
    made = []
    for each, times in zip(op.axes(0), op.entries(1), strict=True):
        if times is None:
            raise Mixes("the number of repetitions is unknown")
        made.append(axis(*times, *each))
    result = repeated(fact, tuple(made))
    return replace(result, lengths=result.lengths | displaced(made))


@rule("BroadcastTo")
def broadcast_to(op: Op) -> Fact:
    """Repeats dimensions of size 1."""
    fact, wanted = op.inputs[0], op.entries(1)
    axes = (*[()] * (len(wanted) - len(op.axes(0))), *op.axes(0))
    made = []
    for each, size_ in zip(axes, wanted, strict=True):
        if size_ is None or (each and not same_size(each, size_)):
            raise Mixes("the number of repetitions is unknown")
        made.append(each or size_)
    return repeated(replace(fact, axes=axes, fills=()), tuple(made))


@rule("Fill")
def fill(op: Op) -> Fact:
    axes = tuple(each if each is not None else () for each in op.entries(0))
    if None in op.entries(0):
        raise Mixes("its size is unknown")
    value = as_value(op.inputs[1])
    if value.kind is not Kind.FIXED:
        raise Mixes("one row's value fills all rows")
    return replace(value, axes=axes, value=None)


@rule("Pad", "PadV2", "MirrorPad")
def pad(op: Op) -> Fact:
    fact = as_value(op.inputs[0])
    amounts = np.reshape(op.numbers(1), [-1, 2])
    made: list[Axis] = []
    fills: list[Any] = []
    lengths = fact.lengths
    put = as_value(op.inputs[2]) if op.type == "PadV2" else fixed((), np.zeros([]))
    for number, (each, (before, behind)) in enumerate(zip(op.axes(0), amounts, strict=True)):
        more = int(before) + int(behind)
        fill = fact.fill(number)
        same = not behind or (fill == put.uniform and op.type != "MirrorPad")
        fills.append(fill if same else None)
        if behind and fills[-1] is None:
            lengths |= longest([each])
        if not more:
            made.append(each)
        elif has_rows([each]):
            raise Mixes("it pads the rows")
        elif longest([each]):
            if len(each) > 1 or not str(each[0]).startswith("longest:"):
                raise Mixes("it pads lists that may already be padded")
            made.append((str(each[0]).replace("longest:", f"longest+{more}:"),))
        elif is_counted(each):
            made.append(axis(count(each) + more))
        else:
            made.append((f"size:{op.name}/{len(made)}",))
    known = tuple(fills) if any(fill is not None for fill in fills) else ()
    changed = fact.changed(axes=tuple(made), fills=known)
    return replace(changed, lengths=lengths | put.lengths)


@rule("Range")
def range_(op: Op) -> Fact:
    """Counts from 0; the result holds the positions along a dimension."""
    limit = op.inputs[1]
    if limit.kind is not Kind.SIZES:
        raise Mixes("its end depends on values")
    (end,) = op.entries(1)
    if op.number(0) != 0 or op.number(2) != 1 or end is None:
        raise Mixes("positions do not begin at 0")
    if has_rows([end]):
        return Fact(Kind.ROWS, (end,), refers=end)
    lists = longest([end])
    mark = ("position", next(iter(lists))) if len(end) == 1 and len(lists) == 1 else None
    return Fact(Kind.FIXED, (end,), mark=mark)


def repeated(fact: Fact, axes: Axes) -> Fact:
    """The fact of a tensor whose dimensions of size 1 are repeated."""
    if fact.axes == axes:
        return fact
    if fact.kind is Kind.SIZES:
        fact = as_value(fact)
    if fact.kind is Kind.SPLITS:
        raise Mixes("splits are repeated")
    fills = tuple(
        fact.fill(number) if before else None for number, before in enumerate(fact.axes or ())
    )
    known = fills if any(fill is not None for fill in fills) else ()
    return replace(fact, axes=axes, fills=known, mark=None, value=None)
