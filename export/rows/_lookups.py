"""Entries looked up by number or by value, and masks that choose entries."""

from dataclasses import replace

import tensorflow as tf
from colcast.export.rows._facts import (
    Axis,
    Fact,
    Mixes,
    R,
    aligned,
    chosen,
    dim,
    elements,
    has_rows,
    list_of,
    lists_in,
    values,
    width,
)
from colcast.export.rows._op import Op, count, equal, rule


@rule("GatherV2", "Gather", "ResourceGather")
def gather(op: Op) -> Fact:
    table, ids = op.ins[0], op.ins[1]
    batched = op.attr("batch_dims") if op.type != "Gather" else 0
    number = op.numbers(2)[0] if op.type == "GatherV2" else 0
    if table.kind == "size" and len(ids.axes) < 2:
        kept = tuple(table.sizes[index] for index in op.numbers(1))
        return Fact("size", (dim(len(kept)),) if ids.axes else (), sizes=kept)
    if op.type == "ResourceGather":
        table = _variable(op)
    if not -len(table.axes) <= number < len(table.axes):
        raise Mixes("the table has no such dimension")
    number %= len(table.axes)
    batched += len(ids.axes) if batched < 0 else 0
    into = table.axes[number]
    made = (*table.axes[:number], *ids.axes[batched:], *table.axes[number + 1 :])
    if ids.kind == "ids":
        if batched or not isinstance(ids.of, tuple) or not aligned(ids.of, into):
            raise Mixes("positions in one dimension are used in another")
        if table.kind in ("ids", "indices"):
            return replace(table, axes=made, pads=table.pads | ids.pads)
        return replace(values([table], made), pads=table.pads | ids.pads)
    if has_rows(into):
        raise Mixes("positions may point to other rows")
    pads = lists_in([into])
    for one, other in zip(table.axes[:batched], ids.axes[:batched], strict=True):
        _, more = equal(one, other)
        pads |= more
    return values([table, ids], made, pads)


def _variable(op: Op) -> Fact:
    """The fact of the variable that a resource holds."""
    held, made = op.operation.inputs[0].op, op.operation.outputs[0].shape
    if held.type == "VarHandleOp":
        shape = tf.TensorShape(held.get_attr("shape"))
    else:
        shape = made if made.rank is None else [None, *made[len(op.ins[1].axes) :]]
    if op.ins[0].kind != "fixed" or tf.TensorShape(shape).rank is None or op.attr("batch_dims"):
        raise Mixes("the rank of the table is unknown")
    sizes = [op.open(n) if size is None else dim(size) for n, size in enumerate(shape)]
    return Fact("fixed", tuple(sizes))


@rule("GatherNd")
def gather_nd(op: Op) -> Fact:
    table, ids = op.ins
    depth = count(ids.axes[-1])
    if ids.kind in ("ids", "indices"):
        if (
            not isinstance(ids.of, tuple)
            or not aligned(ids.of, table.axes[0])
            or len(ids.axes) != 2
        ):
            raise Mixes("positions in one dimension are used in another")
        made = values([table], (ids.axes[0], *table.axes[depth:]))
        return replace(made, pads=table.pads | ids.pads)
    if has_rows(*table.axes):
        raise Mixes("positions may point to other rows")
    return values([table, ids], (*ids.axes[:-1], *table.axes[depth:]), lists_in(table.axes[:depth]))


@rule("LowerBound", "UpperBound")
def search(op: Op) -> Fact:
    """For each value, its place among sorted numbers."""
    sorted_, wanted = (fact.plain() for fact in op.ins)
    pads = lists_in(sorted_.axes[1:])
    if has_rows(*sorted_.axes[1:]):
        raise Mixes("rows are sorted")
    _, more = equal(sorted_.axes[0], wanted.axes[0])
    return values([sorted_, wanted], wanted.axes, pads | more)


@rule("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(op: Op) -> list[Fact]:
    """Each distinct value, which belongs to all rows that have it; -0 and 0 would be one value."""
    fact = op.ins[0].plain()
    if op.operation.inputs[0].dtype.base_dtype.is_floating:
        raise Mixes("0 and -0 count as one value")
    if len(fact.axes) != 1 or not has_rows(*fact.axes):
        raise Mixes("it finds distinct values in several dimensions")
    distinct: Axis = (f"distinct:{op.name}",)
    made = [Fact("rows", (distinct,), fact.pads), Fact("ids", fact.axes, fact.pads, of=distinct)]
    counts = Fact("mixed", why=f"it counts the rows of each value ({op.type} {op.name})")
    return [*made, counts][: op.outputs]


@rule("Where")
def where(op: Op) -> Fact:
    """The positions of entries that a mask chooses."""
    fact = op.ins[0].plain()
    role, name = fact.role
    step = op.origins[0]
    if len(fact.axes) == 1 and has_rows(*fact.axes):
        (into,) = fact.axes
        if role == "mask":
            return Fact("ids", (elements(name), ()), fact.pads, of=into)
        if fact.same and into[0] == R[0] and not lists_in([into]):
            return Fact("ids", ((R[0], f"?{step}"), ()), fact.pads, of=into, same=True)
        pads = fact.pads | lists_in([into])
        if str(into[0]).startswith("elements:") and len(into) == 1:
            return Fact("ids", (elements(chosen(list_of(into), step)), ()), pads, of=into)
        return Fact("ids", (elements(f"?{step}"), ()), pads, of=into)
    width_ = dim(len(fact.axes))
    if fact.kind == "fixed":
        lists = fact.pads | lists_in(fact.axes)
        return Fact("fixed", (width(lists, op.name) if lists else op.open(), width_), lists)
    if fact.axes[0] != R:
        raise Mixes("it is unknown which rows the entries belong to")
    if role == "mask":
        return Fact("indices", (elements(name), width_), fact.pads, of=R)
    if fact.same and not lists_in(fact.axes):
        return Fact("indices", ((R[0], f"?{step}"), width_), fact.pads, of=R, same=True)
    return Fact("indices", (elements(f"?{step}"), width_), fact.pads | lists_in(fact.axes), of=R)
