"""Rules for ops that pick entries by position."""

from dataclasses import replace

import numpy as np
from colcast.export.rows._facts import (
    Axes,
    Axis,
    Fact,
    Kind,
    are_aligned,
    axis,
    has_rows,
    is_shared,
    longest,
    mixed,
    sizes,
)
from colcast.export.rows._op import Mixes, Op, as_value, count, rule, together


@rule("GatherV2", "Gather", "ResourceGather")
def gather(op: Op) -> Fact:
    """Picks entries along one dimension by position."""
    params, indices = op.inputs[0], op.inputs[1]
    batched = op.attribute("batch_dims").i if op.type != "Gather" else 0
    if op.type == "ResourceGather":
        return _from_table(op, indices, batched)
    number = op.number(2) if op.type == "GatherV2" else 0
    if params.kind is Kind.SIZES:
        return _of_sizes(op, params, indices)
    axes, number = op.axes(0), op.axis_of(0, number)
    if batched:
        rank = len(op.axes(1))
        return _of_each(op, params, indices, number, batched % rank if batched < 0 else batched)
    into = axes[number]
    if indices.refers is not None:
        if not are_aligned(indices.refers, into):
            raise Mixes("positions in one dimension are used in another")
        index = indices
    else:
        index = as_value(indices)
        if has_rows([into]):
            raise Mixes("positions may point to other rows")
    if params.plain or (number == len(axes) - 1 and params.places is not None):
        params = as_value(params)
    kind, lengths = together([params, replace(index, refers=None)])
    made = (*axes[:number], *(index.axes or ()), *axes[number + 1 :])
    if index.axes is None:
        raise Mixes("the rank of the positions is unknown")
    if kind is Kind.FIXED and has_rows(made):
        kind = Kind.ROWS
    return Fact(kind, made, lengths, refers=params.refers, places=params.places)


def _from_table(op: Op, indices: Fact, batched: int) -> Fact:
    """Picks rows of a variable."""
    index = as_value(indices)
    if batched or index.axes is None:
        raise Mixes("the rank of the positions is unknown")
    return index.changed(axes=(*index.axes, *op.axes(0)[1:]))


def _of_sizes(op: Op, params: Fact, indices: Fact) -> Fact:
    """Picks sizes from a shape."""
    if indices.kind is not Kind.FIXED or params.sizes is None:
        raise Mixes("values choose among sizes")
    picked = [params.sizes[number] for number in op.numbers(1)]
    return sizes(picked, scalar=op.axes(1) == ())


def _of_each(op: Op, params: Fact, indices: Fact, number: int, batched: int) -> Fact:
    """Picks from each row's own entries."""
    params, index = as_value(params), as_value(indices)
    axes, at = op.axes(0), op.axes(1)
    if axes[:batched] != at[:batched]:
        raise Mixes("positions belong to different rows")
    if has_rows([axes[number]]):
        raise Mixes("positions may point to other rows")
    kind, lengths = together([params, index])
    made = (*axes[:number], *at[batched:], *axes[number + 1 :])
    return Fact(kind, made, lengths)


@rule("GatherNd", "ResourceGatherNd")
def gather_nd(op: Op) -> Fact:
    """Picks entries by their position in the first dimensions."""
    params, indices = op.inputs[0], op.inputs[1]
    if op.type == "ResourceGatherNd":
        raise Mixes("the shape of the table is unknown")
    axes, at = op.axes(0), op.axes(1)
    depth = count(at[-1])
    if params.plain or (params.places is not None and depth == len(axes)):
        params = as_value(params)
    if indices.plain:
        indices = as_value(indices)
    if not _own_rows(axes[:depth], indices):
        raise Mixes("positions may point to other rows")
    made = (*at[:-1], *axes[depth:])
    lengths = params.lengths | indices.lengths
    known = Kind.ROWS if has_rows(made) else together([as_plain(params), as_plain(indices)])[0]
    return Fact(known, made, lengths, refers=params.refers, places=params.places)


def _own_rows(axes: Axes, indices: Fact) -> bool:
    """Whether positions stay within their own row, along every dimension with rows."""
    places = indices.places or (indices.refers,) * len(axes)
    return all(
        not has_rows([each]) or (place is not None and are_aligned(place, each))
        for each, place in zip(axes, places, strict=True)
    )


_UPDATES = ("Add", "Max", "Min", "Sub", "Update")


@rule("ScatterNd", *(f"TensorScatter{each}" for each in _UPDATES))
def scatter_nd(op: Op) -> Fact:
    """Writes entries into zeros, or into a tensor, at positions in the first dimensions."""
    if op.type == "ScatterNd":
        indices, updates, wanted = op.inputs[0], as_value(op.inputs[1]), op.entries(2)
        into = Fact(Kind.FIXED, tuple(each or () for each in wanted))
        at, own = op.axes(0), op.axes(1)
    else:
        into, indices, updates = as_value(op.inputs[0]), op.inputs[1], as_value(op.inputs[2])
        at, own = op.axes(1), op.axes(2)
    axes, depth = into.axes or (), count(at[-1])
    if own != (*at[:-1], *axes[depth:]):
        raise Mixes("entries and their positions have different layouts")
    if not has_rows(axes[:depth]) and has_rows(own):
        raise Mixes("rows are written to the same position")
    if any(map(is_shared, axes[:depth])):
        raise Mixes("rows with equal values are written to the same position")
    if not _own_rows(axes[:depth], indices) or has_rows(axes[depth:]):
        raise Mixes("rows may be written to positions of other rows")
    if indices.plain:
        indices = as_value(indices)
    kind, lengths = together([into, as_plain(indices), updates])
    return Fact(Kind.ROWS if has_rows(axes) else kind, axes, lengths)


def as_plain(fact: Fact) -> Fact:
    """The same fact without `refers` and `places`."""
    return replace(fact, refers=None, places=None)


@rule("Where")
def where(op: Op) -> Fact:
    """Finds the positions of non-zero entries, row by row."""
    fact = as_value(op.inputs[0])
    axes = op.axes(0)
    firsts = [number for number, each in enumerate(axes) if has_rows([each])]
    if firsts != [0]:
        raise Mixes("rows are not the first dimension")
    if fact.mark and fact.mark[0] == "mask":
        lists = fact.mark[1]
    else:  # "?" marks lists that depend on rows; a user's lists are the same on every row
        unknown = "" if fact.kind is Kind.FIXED else "?"
        lists = f"{unknown}{op.sources[0]}@{_domain(axes[0])}"
    lengths = fact.lengths
    entries = op.of_one_row(0)
    elements: Axis = (f"elements:{lists}",)
    if entries is not None and np.any(entries):
        elements = axis(axes[0][0], int(np.count_nonzero(entries)))
    for number, each in enumerate(axes):
        if longest([each]) and fact.fill(number) != 0.0 and not _in_merged(fact, number):
            lengths |= longest([each])
    places: tuple[Axis | None, ...] = tuple(each if has_rows([each]) else None for each in axes)
    width = (len(axes),) if len(axes) > 1 else ()
    return Fact(Kind.ROWS, (elements, width), lengths, places=places)


def _in_merged(fact: Fact, number: int) -> bool:
    """Whether a mask of lists was flattened into one dimension with its rows."""
    return bool(fact.mark and fact.mark[0] == "mask" and number == 0)


def _domain(each: Axis) -> str:
    """The domain whose rows a dimension has."""
    for factor in each:
        if isinstance(factor, str) and factor.startswith("rows:"):
            return factor.removeprefix("rows:")
        if isinstance(factor, str) and "@" in factor:
            return factor.rpartition("@")[2]
    raise Mixes("rows belong to no domain")


@rule("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(op: Op) -> list[Fact]:
    """Finds the distinct values, which belong to no row, and each entry's index among them."""
    fact = as_value(op.inputs[0])
    axes = op.axes(0)
    if len(axes) != 1 or longest(axes):
        raise Mixes("distinct values of several dimensions")
    values = (f"distinct:{op.name}@{_domain(axes[0])}",)
    counts = mixed(f"{op.type} ({op.name}): rows with equal values are counted")
    made = [
        Fact(Kind.ROWS, (values,), fact.lengths),
        Fact(Kind.ROWS, axes, fact.lengths, refers=values),
        counts,
    ]
    return made[: op.outputs]


@rule("LowerBound", "UpperBound")
def bound(op: Op) -> Fact:
    """Finds where each value belongs among its row's sorted values."""
    facts = [as_value(fact) for fact in op.inputs[:2]]
    (batch, among), (own, each) = op.axes(0), op.axes(1)
    if batch != own:
        raise Mixes("values are searched for among other rows' values")
    if has_rows([among]):
        raise Mixes("values are searched for among rows")
    kind, lengths = together(facts)
    return Fact(kind, (own, each), lengths | longest([among]))


@rule("InTopK", "InTopKV2")
def in_top_k(op: Op) -> Fact:
    """Checks whether the entry at a position is among the largest in its row."""
    facts = [as_value(fact) for fact in op.inputs]
    (batch, classes), (own,) = op.axes(0), op.axes(1)
    if batch != own:
        raise Mixes("positions belong to different rows")
    if has_rows([classes]):
        raise Mixes("the top rows are chosen")
    kind, lengths = together(facts)
    return Fact(kind, (own,), lengths | longest([classes]))
