"""Ops that put parts together, take them out or repeat them, along dimensions without rows."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from colcast.export.rows._facts import (
    Axis,
    Fact,
    Mixes,
    R,
    dim,
    has_rows,
    lists_in,
    names,
    values,
    width,
)
from colcast.export.rows._op import Op, count, rule, same_shape, within


@rule("Concat", "ConcatV2", "Pack")
def concat(op: Op) -> Fact:
    which = range(len(op.ins))
    if op.type == "Pack":
        number, scalars = op.attr("axis"), not op.ins[0].axes
        if scalars and any(fact.kind == "size" for fact in op.ins):
            return _sizes(op, which)
        rank = len(op.ins[0].axes) + 1
        number = op.axis(0, number, 1)
        facts = [
            replace(fact, axes=(*fact.axes[:number], (), *fact.axes[number:])) for fact in op.ins
        ]
    else:
        which = which[:-1] if op.type == "ConcatV2" else which[1:]
        facts, rank = [op.ins[index] for index in which], len(op.ins[which[0]].axes)
        if any(fact.kind == "size" for fact in facts):
            return _sizes(op, which)
        number = op.axis(which[0], op.numbers(len(op.ins) - 1 if op.type == "ConcatV2" else 0)[0])
    if facts[-1].kind == "splits" and op.type != "Pack":
        return _splits(op, facts)
    if facts[0].kind in ("ids", "indices"):
        return _indices(facts, number)
    if any(len(fact.axes) != rank for fact in facts):
        raise Mixes("its inputs do not fit together")
    along = [fact.axes[number] for fact in facts]
    if has_rows(*along):
        raise Mixes("rows are concatenated")
    rest, pads = same_shape(facts, number)
    rest.insert(number, _total(op, along))
    return values(facts, rest, pads | lists_in(along[:-1]))


def _total(op: Op, along: Sequence[Axis]) -> Axis:
    if not names(along):
        return dim(sum(map(count, along)))
    return width(lists, op.name) if (lists := lists_in(along)) else op.open()


def _sizes(op: Op, which: Sequence[int]) -> Fact:
    made = [each for index in which for each in op.entries(index)]
    return Fact("size", (dim(len(made)),), sizes=tuple(made))


def _splits(op: Op, facts: Sequence[Fact]) -> Fact:
    """0 and the ends of lists: their row splits."""
    role, name = facts[-1].role
    if len(facts) != 2 or role != "ends" or op.numbers(0) != [0] or facts[0].axes != ((),):
        raise Mixes("the position of a row is used as a value")
    return Fact("splits", ((f"splits:{name}",),), facts[-1].pads, of=f"splits:{name}")


def _indices(facts: Sequence[Fact], number: int) -> Fact:
    """The rows of entries beside other numbers of theirs."""
    first, others = facts[0], [fact.plain() for fact in facts[1:]]
    if any(len(fact.axes) != 2 for fact in facts):
        raise Mixes("positions are concatenated")
    rest, _ = same_shape(facts, number)
    rest.insert(number, dim(sum(count(fact.axes[number]) for fact in facts)))
    pads = first.pads.union(*(fact.pads for fact in others))
    return Fact("indices", tuple(rest), pads, sizes=((),), of=first.of)


@rule("Unpack", "Split", "SplitV")
def split(op: Op) -> list[Fact]:
    index = 1 if op.type == "Split" else 0
    fact, pieces = op.ins[index], op.outputs
    if fact.kind == "size" and op.type == "Unpack":
        return [Fact("size", sizes=(each,)) for each in fact.sizes]
    number = op.attr("axis") if op.type == "Unpack" else op.numbers(2 - 2 * index)[0]
    number = op.axis(index, number)
    if fact.kind == "indices" and op.type == "Unpack" and number == 1:
        return [columns(fact, [each], alone=True) for each in range(pieces)]
    if has_rows(fact.axes[number]) or lists_in([fact.axes[number]]):
        raise Mixes("rows or lists are split")
    before, after = fact.axes[:number], fact.axes[number + 1 :]
    if op.type == "Unpack":
        return [fact.moved((*before, *after))] * pieces
    if op.type == "Split":
        whole = fact.axes[number]
        sizes = [op.open() if names([whole]) else dim(count(whole) // pieces)] * pieces
    else:
        given = op.numbers(1)
        rest = op.open()
        if not names([fact.axes[number]]):
            rest = dim(count(fact.axes[number]) - sum(each for each in given if each >= 0))
        sizes = [rest if each < 0 else dim(each) for each in given]
    return [fact.moved((*before, each, *after)) for each in sizes]


def columns(fact: Fact, which: Sequence[int], *, alone: bool) -> Fact:
    """Some columns of a matrix of positions, or one of them as a vector."""
    if alone or len(which) == 1:
        axes = (fact.axes[0],) if alone else (fact.axes[0], ())
        if which[0] == 0:
            return Fact("ids", axes, fact.pads, of=fact.of)
        return Fact("rows", axes, fact.pads)
    if which[0] == 0 and 0 not in which[1:]:
        return replace(fact, axes=(fact.axes[0], dim(len(which))))
    if 0 in which:
        raise Mixes("the position of a row is used as a value")
    return Fact("rows", (fact.axes[0], dim(len(which))), fact.pads)


@rule("Pad", "PadV2", "MirrorPad")
def pad(op: Op) -> Fact:
    made, pads = [], frozenset[str]()
    around = np.reshape(op.numbers(1), [-1, 2]).tolist()
    if any(fact.plain().axes for fact in op.ins[2:]):
        raise Mixes("the padding is not a scalar")
    for number, (each, (before, after)) in enumerate(zip(op.ins[0].axes, around, strict=True)):
        lists = lists_in([each])
        if before + after and has_rows(each):
            raise Mixes("rows are padded")
        if after or (op.type == "MirrorPad" and before):
            pads |= lists
        if not before + after:
            made.append(each)
        elif lists:
            made.append(width(lists, f"{op.name}/{number}"))
        else:
            made.append(op.open(number) if names([each]) else dim(count(each) + before + after))
    return values([op.ins[0], *op.ins[2:]], made, pads)


@rule("Reverse", "ReverseV2", "Roll")
def turned(op: Op) -> Fact:
    """Moves entries along dimensions; no row decides how far."""
    axes, given = op.ins[0].axes, op.numbers(2 if op.type == "Roll" else 1)
    if op.type == "Reverse":
        given = [number for number, turns in enumerate(given) if turns]
    along = [axes[op.axis(0, number)] for number in given]
    if has_rows(*along) or any(fact.plain().kind != "fixed" for fact in op.ins[1:]):
        raise Mixes("rows are moved, or decide how far others are")
    return values(op.ins, axes, lists_in(along))


@rule("Tile", "BroadcastTo")
def repeat(op: Op) -> Fact:
    fact, wanted = op.ins[0], op.entries(1)
    axes = (*[()] * (len(wanted) - len(fact.axes)), *fact.axes)
    made = []
    for each, times in zip(axes, wanted, strict=True):
        if times is None:
            raise Mixes("the number of repetitions is unknown")
        if op.type == "BroadcastTo":
            if each and each != times:
                raise Mixes("sizes do not fit together")
            made.append(times)
            continue
        if has_rows(each) and times:
            raise Mixes("rows are repeated one after another")
        made.append(dim(*times, *each))
    if tuple(made) == fact.axes:
        return fact
    return fact.moved(tuple(made), within(made))


@rule("Fill")
def fill(op: Op) -> Fact:
    sizes = op.entries(0)
    if None in sizes or op.ins[1].plain().kind != "fixed":
        raise Mixes("one row's value fills all rows")
    return values([op.ins[1]], [each or () for each in sizes])


@rule("Range")
def numbers(op: Op) -> Fact:
    """The numbers 0, 1, ...: positions in lists, or of rows."""
    (end,) = op.entries(1)
    if op.numbers(0) != [0] or op.numbers(2) != [1] or end is None:
        raise Mixes("it does not count from 0 to a known size")
    if end == R:
        return Fact("ids", (R,), of=R)
    if has_rows(end):
        raise Mixes("rows are numbered")
    return Fact("fixed", (end,), of="positions:")


@rule("MatrixBandPart")
def band(op: Op) -> Fact:
    if has_rows(*op.ins[0].axes[-2:]) or any(fact.plain().kind != "fixed" for fact in op.ins[1:]):
        raise Mixes("rows are selected by position")
    return values(op.ins, op.ins[0].axes)
