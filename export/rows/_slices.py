"""Slices: parts of dimensions without rows, counted from the first entry or from the last."""

from collections.abc import Sequence
from dataclasses import replace

from colcast.export.rows._facts import (
    Axis,
    Fact,
    Mixes,
    R,
    dim,
    has_rows,
    lists_in,
    names,
    width,
)
from colcast.export.rows._op import Op, count, rule
from colcast.export.rows._parts import columns


@rule("Slice")
def slice_(op: Op) -> Fact:
    fact, begin = op.ins[0], op.numbers(1)
    if fact.kind == "size":
        return _sizes(fact, slice(begin[0], None if (n := op.numbers(2)[0]) < 0 else begin[0] + n))
    if fact.kind in ("indices", "splits"):
        raise Mixes("positions are sliced")
    made, pads = [], frozenset[str]()
    for number, (each, start, wanted) in enumerate(
        zip(fact.axes, begin, op.entries(2), strict=True)
    ):
        if start == 0 and wanted in (None, each):
            made.append(each)
        elif has_rows(each) or (wanted and has_rows(wanted)):
            raise Mixes("rows are sliced")
        elif wanted is not None:
            pads |= lists_in([each, wanted])
            made.append(wanted)
        else:
            made.append(_cut(op, number, each, slice(start, None, 1)))
    return fact.moved(tuple(made), pads)


def _sizes(fact: Fact, which: slice) -> Fact:
    kept = fact.sizes[which]
    return Fact("size", (dim(len(kept)),), sizes=kept)


def _cut(op: Op, number: int, each: Axis, which: slice) -> Axis:
    """The size of a part of a dimension."""
    if lists := lists_in([each]):
        return width(
            lists,
            f"{each[0]}[{which.start}:{which.stop}:{which.step}]"
            if len(each) == 1
            else f"{op.name}/{number}",
        )
    return op.open(number) if names([each]) else dim(len(range(count(each))[which]))


def _bounds(op: Op, index: int) -> list[int | Axis | None]:
    """Where slices begin or end: numbers, or sizes of the run; None if unknown."""
    if op.ins[index].kind == "size" and op.value(index) is None:
        return [each if names([each]) else count(each or ()) for each in op.ins[index].sizes]
    return list(op.numbers(index))


@rule("StridedSlice")
def strided_slice(op: Op) -> Fact:
    fact = op.ins[0]
    mask = {
        name: op.attr(f"{name}_mask")
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    begin, end, step = _bounds(op, 1), _bounds(op, 2), op.numbers(3)
    if fact.kind in ("size", "splits"):
        start, stop = (None if mask[m] & 1 else of[0] for m, of in (("begin", begin), ("end", end)))
        if len(begin) > 1 or mask["ellipsis"] or mask["new_axis"]:
            raise Mixes("sizes are reshaped")
        if isinstance(start, tuple) or isinstance(stop, tuple):
            raise Mixes("which sizes it chooses is unknown")
        if fact.kind == "splits":
            return _of_splits(fact, (start, stop, step[0]), mask["shrink_axis"])
        if mask["shrink_axis"]:
            return Fact("size", sizes=(fact.sizes[start or 0],))
        return _sizes(fact, slice(start, stop, step[0]))
    made: list[Axis] = []
    pads, number = frozenset[str](), 0
    explicit = sum(not (mask["new_axis"] | mask["ellipsis"]) >> p & 1 for p in range(len(begin)))
    of_indices: list[int] = list(range(count(fact.axes[1]))) if fact.kind == "indices" else []
    alone = False
    for place in range(len(begin)):
        has = {name: bits >> place & 1 for name, bits in mask.items()}
        if has["ellipsis"]:
            many = len(fact.axes) - explicit
            made += fact.axes[number : number + many]
            number += many
            continue
        if has["new_axis"]:
            if fact.kind == "indices":
                raise Mixes("positions are reshaped")
            made.append(())
            continue
        each = fact.axes[number]
        number += 1
        start, stop = None if has["begin"] else begin[place], None if has["end"] else end[place]
        if fact.kind == "indices" and number == 2:
            if isinstance(start, tuple) or isinstance(stop, tuple):
                raise Mixes("which positions it chooses depends on the run")
            alone = bool(has["shrink_axis"])
            which = range(len(of_indices))
            of_indices = [which[start or 0]] if alone else list(which[start : stop : step[place]])
            continue
        if has["shrink_axis"]:
            if has_rows(each):
                raise Mixes("a row is picked by position")
            if not isinstance(start, int | None):
                raise Mixes("the position of an entry depends on the run")
            pads |= lists_in([each])
            continue
        size, more = _sliced(op, place, each, (start, stop, step[place]))
        made.append(size)
        pads |= more
    if fact.kind == "indices":
        if made[:1] != [fact.axes[0]]:
            raise Mixes("positions are sliced")
        return columns(fact, of_indices, alone=alone)
    return fact.moved((*made, *fact.axes[number:]), pads)


def _sliced(
    op: Op, number: int, each: Axis, part: tuple[int | Axis | None, int | Axis | None, int]
) -> tuple[Axis, frozenset[str]]:
    """The size of a part of a dimension, and lists whose length decides which entries it has."""
    start, stop, step = part
    if start in (0, None) and stop in (None, each) and step == 1:
        return each, frozenset()
    if start in (0, None) and stop == R and step == 1 and not each:
        return (), frozenset()  # of a single entry; a late graph hides its shape that way
    if has_rows(each) or any(isinstance(one, tuple) and has_rows(one) for one in (start, stop)):
        raise Mixes("rows are sliced")
    if isinstance(start, tuple) or (isinstance(stop, tuple) and (start or step != 1)):
        raise Mixes("where a slice begins depends on the run")
    if isinstance(stop, tuple):  # the first entries, as many as another dimension has
        lists = lists_in([each, stop])
        return (width(lists, f"{op.name}/{number}") if lists else op.open(number)), frozenset()
    from_end = (start or 0) < 0 or (stop or 0) < 0 or (step or 1) < 0
    return _cut(op, number, each, slice(start, stop, step)), lists_in(
        [each]
    ) if from_end else frozenset()


def _of_splits(fact: Fact, part: Sequence[int | None], shrinks: int) -> Fact:
    """Row splits without the last, where lists start, or without the first, where they end."""
    role, name = fact.role
    start, stop, step = part
    if role == "splits" and step == 1 and not shrinks:
        if start in (0, None) and stop == -1:
            return replace(fact, axes=(R,), of=f"starts:{name}")
        if start == 1 and stop is None:
            return replace(fact, axes=(R,), of=f"ends:{name}")
    raise Mixes("the position of a row is used as a value")
