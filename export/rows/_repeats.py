"""Rules for ops that enlarge dimensions: by repetition, by padding, or from nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
from colcast.export.rows._facts import (
    Axes,
    Axis,
    Fact,
    Kind,
    axis,
    fixed,
    has_rows,
    is_counted,
    longest,
    same_size,
)
from colcast.export.rows._op import Mixes, Op, as_value, count, rule


@rule("Tile")
def tile(op: Op) -> Fact:
    """Repeats all entries."""
    fact = op.inputs[0]
    made = []
    for each, times in zip(op.axes(0), op.entries(1), strict=True):
        if times is None:
            raise Mixes("it is not known how often it is repeated")
        made.append(axis(*times, *each))
    return repeated(fact, tuple(made))


@rule("BroadcastTo")
def broadcast_to(op: Op) -> Fact:
    """Repeats dimensions of size 1."""
    fact, wanted = op.inputs[0], op.entries(1)
    axes = (*[()] * (len(wanted) - len(op.axes(0))), *op.axes(0))
    made = []
    for each, size_ in zip(axes, wanted, strict=True):
        if size_ is None or (each and not same_size(each, size_)):
            raise Mixes("it is not known how often it is repeated")
        made.append(each or size_)
    return repeated(replace(fact, axes=axes, fills=()), tuple(made))


@rule("Fill")
def fill(op: Op) -> Fact:
    """One number everywhere."""
    axes = tuple(each if each is not None else () for each in op.entries(0))
    if None in op.entries(0):
        raise Mixes("its size is not known")
    value = as_value(op.inputs[1])
    if value.kind is not Kind.FIXED:
        raise Mixes("the value of one row fills all")
    return replace(value, axes=axes, value=None)


@rule("Pad", "PadV2", "MirrorPad")
def pad(op: Op) -> Fact:
    """Pads some dimensions at both ends."""
    fact = as_value(op.inputs[0])
    amounts = np.reshape(op.numbers(1), [-1, 2])
    made: list[Axis] = []
    fills: list[Any] = []
    put = as_value(op.inputs[2]) if op.type == "PadV2" else fixed((), np.zeros([]))
    for number, (each, (before, behind)) in enumerate(zip(op.axes(0), amounts, strict=True)):
        more = int(before) + int(behind)
        fill = fact.fill(number)
        same = not behind or (fill == put.uniform and op.type != "MirrorPad")
        fills.append(fill if same else None)
        if not more:
            made.append(each)
        elif has_rows([each]):
            raise Mixes("rows are added")
        elif longest([each]):
            if len(each) > 1 or not str(each[0]).startswith("longest:"):
                raise Mixes("lists are made longer again")
            made.append((str(each[0]).replace("longest:", f"longest+{more}:"),))
        elif is_counted(each):
            made.append(axis(count(each) + more))
        else:
            made.append((f"size:{op.name}/{len(made)}",))
    known = tuple(fills) if any(fill is not None for fill in fills) else ()
    changed = fact.changed(axes=tuple(made), fills=known)
    return replace(changed, lengths=fact.lengths | put.lengths)


@rule("Range")
def range_(op: Op) -> Fact:
    """Ascending numbers from 0: positions along a dimension."""
    limit = op.inputs[1]
    if limit.kind is not Kind.SIZES:
        raise Mixes("its end depends on values")
    (end,) = op.entries(1)
    if op.number(0) != 0 or op.number(2) != 1 or end is None:
        raise Mixes("positions that do not begin at 0")
    if has_rows([end]):
        return Fact(Kind.ROWS, (end,), refers=end)
    lists = longest([end])
    mark = ("position", next(iter(lists))) if len(end) == 1 and len(lists) == 1 else None
    return Fact(Kind.FIXED, (end,), mark=mark)


def repeated(fact: Fact, axes: Axes) -> Fact:
    """A tensor with dimensions of size 1 enlarged."""
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
