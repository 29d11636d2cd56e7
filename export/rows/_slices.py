"""Rules for ops that take slices of tensors."""

from dataclasses import dataclass, replace
from typing import Any

from colcast.export.rows._facts import Axis, Fact, Kind, axis, has_rows, is_counted, longest, sizes
from colcast.export.rows._op import Mixes, Op, as_value, count, rule, together
from colcast.export.rows._shapes import LAID_OUT, with_axes


@rule("Unpack")
def unpack(op: Op) -> list[Fact]:
    fact, number = op.inputs[0], op.axis_of(0, op.attribute("axis").i)
    if fact.kind is Kind.SIZES:
        return [sizes([entry], scalar=True) for entry in fact.sizes or ()]
    if has_rows([op.axes(0)[number]]):
        raise Mixes("rows are split up")
    return [
        with_axes(_column(fact, number, index), number, number + 1, [])
        for index in range(op.outputs)
    ]


@rule("Split", "SplitV")
def split(op: Op) -> list[Fact]:
    data, by = (1, 0) if op.type == "Split" else (0, 2)
    fact, number = as_value(op.inputs[data]), op.axis_of(data, op.number(by))
    (whole,) = [op.axes(data)[number]]
    if not is_counted(whole):
        raise Mixes("rows are split up" if has_rows([whole]) else "lists are split up")
    total = count(whole)
    pieces = op.numbers(1) if op.type == "SplitV" else [total // op.outputs] * op.outputs
    pieces = [total - sum(p for p in pieces if p >= 0) if p < 0 else p for p in pieces]
    return [
        with_axes(fact.changed(uniform=fact.uniform), number, number + 1, [axis(piece)])
        for piece in pieces
    ]


@rule("Slice")
def slice_(op: Op) -> Fact:
    fact, begin = op.inputs[0], op.numbers(1)
    if fact.kind is Kind.SIZES:
        end = op.numbers(2)[0]
        entries = list(fact.sizes or ())[begin[0] :]
        return sizes(entries if end < 0 else entries[:end])
    made = []
    for number, (each, start, wanted) in enumerate(
        zip(op.axes(0), begin, op.entries(2), strict=True)
    ):
        if start == 0 and (wanted is None or wanted == each):
            made.append(each)
        else:
            made.append(_slice_size(op, number, each, start, wanted))
    return as_value(fact).changed(axes=tuple(made), uniform=fact.uniform)


def _slice_size(op: Op, number: int, each: Axis, start: int, wanted: Axis | None) -> Axis:
    if has_rows([each]) or longest([each]):
        raise Mixes("rows are sliced" if has_rows([each]) else "lists are sliced")
    if wanted is None:
        if len(each) != 1 or not isinstance(each[0], int):
            raise Mixes(f"a slice of dimension {number} has an unknown size")
        return axis(each[0] - start)
    if has_rows([wanted]):
        raise Mixes("as many entries are picked as there are rows")
    return wanted


@rule("Reverse", "ReverseV2")
def reverse(op: Op) -> Fact:
    fact, lengths = as_value(op.inputs[0]), frozenset[str]()
    numbers = op.numbers(1)
    if op.type == "Reverse":
        numbers = [number for number, turned in enumerate(numbers) if turned]
    for number in numbers:
        each = op.axes(0)[op.axis_of(0, number)]
        if has_rows([each]):
            raise Mixes("the rows are reversed")
        lengths |= longest([each])
    return fact.changed(lengths=fact.lengths | lengths)


@rule("Roll")
def roll(op: Op) -> Fact:
    fact, by = as_value(op.inputs[0]), as_value(op.inputs[1])
    moved = [op.axes(0)[op.axis_of(0, number)] for number in op.numbers(2)]
    if has_rows(moved):
        raise Mixes("rows are moved")
    return fact.changed(lengths=fact.lengths | by.lengths | longest(moved))


@rule("ReverseSequence")
def reverse_sequence(op: Op) -> Fact:
    """Reverses the first entries of each row."""
    fact, counts = as_value(op.inputs[0]), as_value(op.inputs[1])
    along = op.axes(0)[op.axis_of(0, op.attribute("seq_dim").i)]
    own = op.axes(0)[op.axis_of(0, op.attribute("batch_dim").i)]
    if has_rows([along]):
        raise Mixes("the rows are reversed")
    if (own,) != op.axes(1):
        raise Mixes("the lengths belong to other rows")
    kind, lengths = together([fact, counts])
    return Fact(kind, op.axes(0), lengths)


@rule("StridedSlice")
def strided_slice(op: Op) -> Fact:
    """Takes single entries or slices of dimensions, and adds dimensions of size 1."""
    fact = op.inputs[0]
    if fact.kind is Kind.SIZES:
        return _some_sizes(op, fact)
    if fact.kind is Kind.SPLITS:
        return _some_splits(op, fact)
    picked, axes = fact, op.axes(0)
    made: list[Axis] = []
    fills: list[Any] = []
    lengths = frozenset[str]()
    number = 0
    for spec in _specs(op):
        if spec.taken == "new":
            made.append(())
            fills.append(None)
            continue
        each, places = axes[number], fact.places if number == len(axes) - 1 else None
        if spec.taken == "one":
            lengths |= _single(each, spec.begin)
            if places is not None:
                picked = replace(fact, places=None, refers=places[spec.begin or 0])
        elif spec.taken == "all" or (spec.taken == "rows" and not each):
            made.append(each)
            fills.append(fact.fill(number))
        else:
            found, tied = _sliced(each, spec)
            made.append(found)
            fills.append(None)
            lengths |= tied
            if places is not None:
                picked = replace(fact, places=places[spec.begin : spec.end : spec.step])
        number += 1
    if picked.refers is None and picked.places is None:
        picked = as_value(picked)
    known = tuple(fills) if any(fill is not None for fill in fills) else ()
    changed = picked.changed(axes=tuple(made), fills=known, uniform=fact.uniform)
    return replace(changed, lengths=changed.lengths | lengths)


_MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")


@dataclass(frozen=True)
class _Spec:
    """The slice of one dimension.

    Attributes:
        taken: "one" entry, "some" or "all"; "rows" for a slice as long as the number of rows, in a
            dimension of size 1; "new" for a new dimension.
        begin: the first entry; None for the start.
        end: the end, exclusive; None if unknown or open.
        step: the distance between entries; None if unknown.
        open_end: whether the slice has no end.
    """

    taken: str
    begin: int | None = None
    end: int | None = None
    step: int | None = None
    open_end: bool = False


def _specs(op: Op) -> list[_Spec]:
    """The slice of each dimension of a StridedSlice, including omitted ones."""
    masks = _masks(op)
    begins, ends, steps = (op.value_of(index) for index in (1, 2, 3))
    (width,) = op.axes(1)
    found = []
    behind = len(op.axes(0))  # dimensions that no spec covers yet
    count_ = count(width)
    for place in range(count_):
        bit = 1 << place
        if masks["ellipsis"] & bit:
            later = sum(not masks["new_axis"] & (1 << s) for s in range(place + 1, count_))
            found += [_Spec("all")] * (behind - later)
            behind = later
            continue
        if masks["new_axis"] & bit:
            found.append(_Spec("new"))
            continue
        behind -= 1
        if begins is None and not masks["begin"] & bit:
            raise Mixes("it is unknown which entries are picked")
        begin = None if masks["begin"] & bit else int(begins[place])
        end = None if masks["end"] & bit or ends is None else int(ends[place])
        step = None if steps is None else int(steps[place])
        from_the_front = begin == 0 or masks["begin"] & bit
        if masks["shrink_axis"] & bit:
            found.append(_Spec("one", begin))
        elif from_the_front and masks["end"] & bit and step == 1:
            found.append(_Spec("all"))
        elif from_the_front and step == 1 and ends is None and _is_each_row(op, place):
            found.append(_Spec("rows"))
        else:
            found.append(_Spec("some", begin, end, step, bool(masks["end"] & bit)))
    return found + [_Spec("all")] * behind


def _is_each_row(op: Op, place: int) -> bool:
    """Whether a slice ends at the number of rows, which is at least 1."""
    entry = (op.inputs[2].sizes or [None] * (place + 1))[place]
    return bool(entry) and all(str(factor).startswith("rows:") for factor in entry or ())


def _masks(op: Op) -> dict[str, int]:
    return {name: op.attribute(f"{name}_mask").i for name in _MASKS}


def _single(each: Axis, begin: int | None) -> frozenset[str]:
    """Checks that one entry may be picked; returns the lists whose length determines which."""
    if has_rows([each]):
        raise Mixes("a row is picked by position")
    if begin is None:
        raise Mixes("it is unknown which entry is picked")
    return longest([each]) if begin < 0 else frozenset()


def _sliced(each: Axis, spec: _Spec) -> tuple[Axis, frozenset[str]]:
    """A slice of a dimension, and the lists whose length affects it."""
    if has_rows([each]):
        raise Mixes("rows are picked by position")
    begin, end, step = spec.begin, spec.end, spec.step
    if not is_counted(each):
        from_the_front = step == 1 and (begin is None or begin >= 0)
        if longest([each]) and from_the_front and end is not None and end >= 0:
            return axis(f"size:the first {end}"), longest([each])
        raise Mixes("lists are sliced")
    if step is None or (end is None and not spec.open_end):
        raise Mixes("it is unknown which entries are picked")
    return axis(len(range(count(each))[slice(begin, end, step)])), frozenset()


def _some_sizes(op: Op, fact: Fact) -> Fact:
    masks = _masks(op)
    if masks["ellipsis"] or masks["new_axis"]:
        raise Mixes(LAID_OUT)
    begin = None if masks["begin"] else op.number(1)
    entries = list(fact.sizes or ())
    if masks["shrink_axis"]:
        return sizes([entries[op.number(1)]], scalar=True)
    end = None if masks["end"] else op.number(2)
    return sizes(entries[begin : end : op.number(3)])


def _some_splits(op: Op, fact: Fact) -> Fact:
    """Slices splits: where lists end, where they begin, or the total number of elements."""
    masks = _masks(op)
    if fact.mark is None or fact.mark[0] != "splits" or op.number(3) != 1:
        raise Mixes("splits are picked by position")
    lists = fact.mark[1]
    rows = (f"rows:{lists.rpartition('@')[2]}",)
    begin = 0 if masks["begin"] else op.number(1)
    if masks["shrink_axis"]:
        if begin == -1:
            return sizes([(f"elements:{lists}",)], scalar=True)
    elif begin == 1 and masks["end"]:
        return Fact(Kind.SPLITS, (rows,), mark=("ends", lists))
    elif begin == 0 and not masks["end"] and op.number(2) == -1:
        return Fact(Kind.SPLITS, (rows,), mark=("starts", lists))
    elif begin == 0 and masks["end"]:
        return fact
    raise Mixes("splits are picked by position")


def _column(fact: Fact, number: int, index: int) -> Fact:
    """The fact of one entry of a dimension; a column of positions gets its own `refers`."""
    if fact.places is not None and fact.axes and number == len(fact.axes) - 1:
        return replace(fact, places=None, refers=fact.places[index])
    return fact
