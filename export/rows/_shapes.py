"""Shapes, other shapes of the same entries, and parts of dimensions without rows."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from colcast.export.rows._facts import (
    Axis,
    Fact,
    Factor,
    R,
    apart,
    count,
    derived,
    dim,
    equal,
    fixed,
    flat,
    has_rows,
    lists_in,
    names,
    require,
    values,
)
from colcast.export.rows._op import Op, rule


@rule("Shape", "ShapeN")
def shape(op: Op) -> list[Fact]:
    return [sizes(fact.axes) for fact in op.ins]


def sizes(found: Sequence[Axis | None]) -> Fact:
    return Fact("size", (dim(len(found)),), sizes=tuple(found))


@rule("Reshape")
def reshape(op: Op) -> Fact:
    fact, wanted = op.ins[0], op.entries(1)
    if fact.kind == "size" and len(wanted) < 2:
        return replace(fact, axes=(dim(len(fact.sizes)),) if wanted else ())
    require(wanted.count(None) < 2, "several sizes are unknown")
    rest = list(dim(*flat(fact.axes)))
    rows = next((n + 1 for n, factor in enumerate(rest) if has_rows((factor,))), len(rest))
    if None not in wanted and any(str(factor)[0] == "?" for factor in rest[rows:]):
        others = list(dim(*flat(wanted)))
        if others[:rows] == rest[:rows] and not has_rows(tuple(others[rows:])):
            # Each row has as many entries as before, in their order.
            made = [each or () for each in wanted]
            return fact.reshaped(made, lists_in([(*rest[rows:], *others)]) | within(made))
    # The order of the factors must show that each entry keeps its row.
    at = [*wanted, None].index(None)
    rest = _behind(flat(wanted[:at]), rest)
    rest = _behind(flat(wanted[at:])[::-1], rest[::-1])[::-1]
    require(None in wanted or not rest, "the rows of entries are unknown")
    made = [dim(*rest) if each is None else each for each in wanted]
    return fact.reshaped(made, within(made))


def within(axes: Sequence[Axis]) -> frozenset[str]:
    """Lists whose width moves entries of these dimensions: not the slowest factors."""
    return lists_in(each[1:] for each in axes if not has_rows(each))


def _behind(wanted: Sequence[Factor], factors: Sequence[Factor]) -> list[Factor]:
    """The factors that follow `wanted`, with which `factors` begins."""
    rest = list(factors)
    for factor in wanted:
        first = rest.pop(0) if rest else None
        if isinstance(first, int) and isinstance(factor, int) and factor and first % factor == 0:
            rest = [*dim(first // factor), *rest]
        else:
            require(first == factor, "rows trade places with another dimension")
    return rest


@rule("ExpandDims")
def expand_dims(op: Op) -> Fact:
    fact, number = op.ins[0], op.axis(0, op.numbers(1)[0], 1)
    if fact.kind == "size" and not fact.axes:
        return replace(fact, axes=((),))
    return fact.reshaped((*fact.axes[:number], (), *fact.axes[number:]))


@rule("Squeeze")
def squeeze(op: Op) -> Fact:
    """Without dimensions to drop, it drops all of size 1, which may be rows, lists or unknown."""
    fact = op.ins[0]
    gone = {op.axis(0, number) for number in op.attr("squeeze_dims")}
    if fact.kind == "size" and len(fact.sizes) == 1:
        return replace(fact, axes=())
    require(gone, "which dimensions it drops depends on the run: it has no `axis`")
    require(not any(fact.axes[n] for n in gone), "a dimension that may be larger than 1 is dropped")
    return fact.reshaped(each for number, each in enumerate(fact.axes) if number not in gone)


@rule("Transpose")
def transpose(op: Op) -> Fact:
    fact = op.ins[0]
    axes = tuple(fact.axes[op.axis(0, number)] for number in op.numbers(1))
    return replace(fact, axes=axes) if fact.kind == "indices" else fact.moved(axes)


@rule("Concat", "ConcatV2", "Pack")
def concat(op: Op) -> Fact:
    which = list(range(len(op.ins)))
    place = {"Concat": 0, "ConcatV2": which[-1]}.get(op.type)
    which = [index for index in which if index != place]
    facts = [op.ins[index] for index in which]
    if any(fact.kind == "size" for fact in facts) and (place is not None or not facts[0].axes):
        return sizes([each for index in which for each in op.entries(index)])
    if place is None:
        number = op.axis(which[0], op.attr("axis"), 1)
        facts = [replace(f, axes=(*f.axes[:number], (), *f.axes[number:])) for f in facts]
    else:
        number = op.axis(which[0], op.numbers(place)[0])
    along = [fact.axes[number] for fact in facts]
    # A list at the end moves no other entry.
    made, pads = list(facts[0].axes), apart(*along[:-1])
    apart(along[-1])
    for fact in facts:
        for n, each in enumerate(fact.axes):
            if n != number:
                made[n], more = equal(made[n], each)
                pads |= more
    made[number] = op.derived(along) if names(along) else dim(sum(map(count, along)))
    if facts[0].kind not in ("ids", "indices"):
        return values(facts, made, pads)
    # The rows of entries beside other numbers of theirs.
    require(len(made) == 2, "positions are concatenated")
    pads = pads.union(facts[0].pads, *(fact.plain().pads for fact in facts[1:]))
    return Fact("indices", tuple(made), pads, sizes=((),), of=facts[0].of)


_Bound = int | Axis | None
_Part = tuple[_Bound, _Bound, int] | int | str
_NEW, _REST = "a new dimension", "the dimensions that are not named"
_WHOLE: _Part = (None, None, 1)


@rule("Unpack")
def unpack(op: Op) -> list[Fact]:
    before = [_WHOLE] * op.axis(0, op.attr("axis"))
    return [_sliced(op, [*before, number]) for number in range(op.attr("num"))]


@rule("Split", "SplitV")
def split(op: Op) -> list[Fact]:
    index, many = int(op.type == "Split"), len(op.operation.outputs)
    number = op.axis(index, op.numbers(2 - 2 * index)[0])
    whole = count(op.ins[index].axes[number])
    wanted = op.numbers(1) if op.type == "SplitV" else [whole // many] * many
    ends = np.cumsum([each if each >= 0 else whole - sum(wanted) - 1 for each in wanted]).tolist()
    parts = zip([0, *ends], ends, strict=False)
    return [_sliced(op, [*[_WHOLE] * number, (*part, 1)], index) for part in parts]


@rule("Slice")
def slice_(op: Op) -> Fact:
    parts = list[_Part]()
    for start, size in zip(op.numbers(1), op.entries(2), strict=True):
        ends = size is None or bool(names([size]))
        require(size is None or not start or not ends, "where a slice ends is unknown")
        parts.append((start, size if ends else start + count(size or ()), 1))
    return _sliced(op, parts)


@rule("StridedSlice")
def strided_slice(op: Op) -> Fact:
    def has(mask: str) -> bool:
        return bool(op.attr(f"{mask}_mask") >> len(parts) & 1)

    parts = list[_Part]()
    for start, stop, step in zip(_bounds(op, 1), _bounds(op, 2), op.numbers(3), strict=True):
        if has("ellipsis") or has("new_axis"):
            parts.append(_REST if has("ellipsis") else _NEW)
        elif has("shrink_axis"):
            require(isinstance(start, int), "the position of an entry depends on the run")
            parts.append(start)  # type: ignore[arg-type]
        else:
            parts.append((None if has("begin") else start, None if has("end") else stop, step))
    return _sliced(op, parts)


def _bounds(op: Op, index: int) -> list[_Bound]:
    """Where slices begin or end: numbers, or sizes of the run."""
    if op.ins[index].kind == "size" and op.value(index) is None:
        return [each if names([each]) else count(each or ()) for each in op.ins[index].sizes]
    return list(op.numbers(index))


def _sliced(op: Op, parts: list[_Part], index: int = 0) -> Fact:
    """A part of a tensor: for each dimension a slice, or a position, which drops it."""
    fact = op.ins[index]
    rest = [_WHOLE] * (len(fact.axes) - sum(part not in (_NEW, _REST) for part in parts))
    at = [*parts, _REST].index(_REST)
    parts = [*parts[:at], *rest, *parts[at + 1 :]]
    if fact.kind in ("size", "splits"):
        (part,) = parts
        require(part != _NEW, "sizes are reshaped")
        if fact.kind == "splits":
            return _of_splits(fact, part)
        if isinstance(part, int):
            return Fact("size", sizes=(fact.sizes[part],))
        return sizes(fact.sizes[slice(*part)])
    if fact.kind == "indices":
        require(len(parts) == 2 and parts[0] in (_WHOLE, (0, fact.axes[0], 1)), "a row is sliced")
        return _columns(fact, parts[1])
    made, pads, axes = list[Axis](), frozenset[str](), list(fact.axes)
    for place, part in enumerate(parts):
        if part == _NEW:
            made.append(())
        elif isinstance(part, int):
            pads |= apart(axes.pop(0))
        else:
            kept, more = _cut(op, place, axes.pop(0), *part)
            made.append(kept)
            pads |= more
    return fact.moved(made, pads)


def _of_splits(fact: Fact, part: _Part) -> Fact:
    """Row splits without the last, where lists start, or without the first, where they end."""
    ends = {(None, -1, 1): "starts", (0, -1, 1): "starts", (1, None, 1): "ends"}
    role, name = fact.role
    require(role == "splits" and part in ends, "the position of a row is used as a value")
    return replace(fact, axes=(R,), of=f"{ends[part]}:{name}")  # type: ignore[index]


def _columns(fact: Fact, part: _Part) -> Fact:
    """Some columns of a matrix of positions, or one of them as a vector; the first has rows."""
    which = np.arange(count(fact.axes[1]))[part if isinstance(part, int) else slice(*part)]
    axes = (fact.axes[0], *map(dim, which.shape))
    kept = which.ravel().tolist()
    require(0 not in kept[1:], "the position of a row is used as a value")
    if kept == [0]:
        return Fact("ids", axes, fact.pads, of=fact.of)
    return replace(fact, axes=axes) if kept[0] == 0 else Fact("rows", axes, fact.pads)


def _cut(
    op: Op, number: int, each: Axis, start: _Bound, stop: _Bound, step: int
) -> tuple[Axis, frozenset[str]]:
    """The size of a part of a dimension, and lists whose length decides which entries it has."""
    if start in (0, None) and stop in (None, each) and step == 1:
        return each, frozenset()
    if start in (0, None) and stop == R and step == 1 and not each:
        return (), frozenset()  # of a single entry; a late graph hides its shape that way
    apart(each, *(bound for bound in (start, stop) if isinstance(bound, tuple)))
    if isinstance(start, tuple) or isinstance(stop, tuple):
        first = start in (0, None) and step == 1
        require(first, "where a slice begins depends on the run")
        return op.derived([each, stop], number), frozenset()  # type: ignore[list-item]
    if not names([each]):
        return dim(len(range(count(each))[start:stop:step])), frozenset()
    from_end = (start or 0) < 0 or (stop or 0) < 0 or step < 0
    part = f"{each}[{start}:{stop}:{step}]"
    return derived([each], part), lists_in([each]) if from_end else frozenset()


@rule("Pad", "PadV2")
def pad(op: Op) -> Fact:
    made, pads = [], frozenset[str]()
    around = np.reshape(op.numbers(1), [-1, 2]).tolist()
    require(not any(fact.plain().axes for fact in op.ins[2:]), "the padding is not a scalar")
    for number, (each, (before, after)) in enumerate(zip(op.ins[0].axes, around, strict=True)):
        if before + after:
            lists = apart(each)
            pads |= lists if after else frozenset()
            known = not names([each])
            each = dim(count(each) + before + after) if known else op.derived([each], number)
        made.append(each)
    return values([op.ins[0], *op.ins[2:]], made, pads)


@rule("Tile", "BroadcastTo")
def repeat(op: Op) -> Fact:
    fact, wanted = op.ins[0], op.entries(1)
    axes = (*[()] * (len(wanted) - len(fact.axes)), *fact.axes)
    made = []
    for each, times in zip(axes, wanted, strict=True):
        require(times is not None, "the number of repetitions is unknown")
        if op.type == "BroadcastTo":
            require(not each or each == times, "sizes do not fit together")
            made.append(times or ())
            continue
        require(not has_rows(each) or not times, "rows are repeated one after another")
        made.append(dim(*times or (), *each))
    return fact if tuple(made) == fact.axes else fact.moved(tuple(made), within(made))


@rule("Fill")
def fill(op: Op) -> Fact:
    found = op.entries(0)
    require(None not in found, "a size is unknown")
    return values([op.ins[1]], [each or () for each in found], fixed(op.ins[1:]))


@rule("Range")
def numbers(op: Op) -> Fact:
    """The numbers 0, 1, ...: positions in lists, or of rows."""
    end = op.size(1)
    require(op.numbers(0) == [0] and op.numbers(2) == [1], "it does not count 0, 1, 2, ...")
    if end == R:
        return Fact("ids", (R,), of=R)
    apart(end)
    return Fact("fixed", (end,), of="positions:")


@rule("MatrixBandPart")
def band(op: Op) -> Fact:
    apart(*op.ins[0].axes[-2:])
    return values(op.ins, op.ins[0].axes, fixed(op.ins[1:]))
