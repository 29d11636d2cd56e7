"""Entries looked up or chosen, sparse and ragged tensors, and segments of rows."""

from dataclasses import replace

import tensorflow as tf
from colcast.export.rows._facts import (
    FILLED,
    Axis,
    Fact,
    R,
    apart,
    chosen,
    count,
    declared,
    derived,
    dim,
    elements,
    equal,
    fixed,
    flat,
    has_rows,
    list_of,
    lists_in,
    names,
    require,
    values,
)
from colcast.export.rows._op import Op, rule
from colcast.export.rows._shapes import sizes

_SORTED = "sorted by"


def _into(ids: Fact, axis: Axis) -> frozenset[str]:
    """Demands that positions are used in the dimension that they are of; returns their lists."""
    require(isinstance(ids.of, tuple), "positions in one dimension are used in another")
    return ids.pads | equal(ids.of, axis)[1]  # type: ignore[arg-type]


@rule("GatherV2", "Gather", "ResourceGather")
def gather(op: Op) -> Fact:
    table, ids = op.ins[0], op.ins[1]
    batched = op.attr("batch_dims") if op.type != "Gather" else 0
    number = op.numbers(2)[0] if op.type == "GatherV2" else 0
    if table.kind == "size" and len(ids.axes) < 2:
        kept = tuple(table.sizes[index] for index in op.numbers(1))
        return Fact("size", (dim(len(kept)),) if ids.axes else (), sizes=kept)
    if op.type == "ResourceGather":  # of a variable, which the output's static shape describes
        require(table.kind == "fixed" and not batched, "rows choose the table")
        shape, handle = op.operation.outputs[0].shape, op.operation.inputs[0].op
        if shape.rank is None and handle.type == "VarHandleOp":
            table = declared(tf.TensorShape(handle.get_attr("shape")), op.name)
        else:
            require(shape.rank is not None, "the rank of the table is unknown")
            table = declared([None, *shape[len(ids.axes) :]], op.name)
    number %= len(table.axes)
    batched += len(ids.axes) if batched < 0 else 0
    made = (*table.axes[:number], *ids.axes[batched:], *table.axes[number + 1 :])
    if ids.kind == "ids":
        pads = table.pads | _into(ids, table.axes[number])
        require(not batched, "positions of rows are used in each row")
        made_of = table if table.kind in ("ids", "indices") else values([table], made)
        return replace(made_of, axes=made, pads=pads)
    pads = apart(table.axes[number])
    for one, other in zip(table.axes[:batched], ids.axes[:batched], strict=True):
        pads |= equal(one, other)[1]
    return values([table, ids], made, pads)


@rule("GatherNd")
def gather_nd(op: Op) -> Fact:
    table, ids = op.ins
    depth = count(ids.axes[-1])
    axes = (*ids.axes[:-1], *table.axes[depth:])
    if ids.kind in ("ids", "indices"):
        require(len(ids.axes) == 2, "positions are in several dimensions")
        return replace(values([table], axes), pads=table.pads | _into(ids, table.axes[0]))
    apart(*table.axes)
    return values([table, ids], axes, lists_in(table.axes[:depth]))


@rule("LowerBound", "UpperBound")
def search(op: Op) -> Fact:
    """For each value, its place among sorted numbers."""
    found, wanted = (fact.axes for fact in op.ins)
    return values(op.ins, wanted, apart(*found[1:]) | equal(found[0], wanted[0])[1])


@rule("Unique", "UniqueV2")
def unique(op: Op) -> list[Fact]:
    """Each distinct value, which belongs to all rows that have it; -0 and 0 would be one value."""
    fact = op.ins[0].plain()
    floats = op.operation.inputs[0].dtype.base_dtype.is_floating
    require(not floats, "0 and -0 count as one value")
    of_rows = len(fact.axes) == 1 and has_rows(*fact.axes)
    require(of_rows, "it finds distinct values in several dimensions")
    distinct: Axis = (f"distinct:{op.name}",)
    index = Fact("ids", fact.axes, fact.pads, of=distinct)
    return [Fact("rows", (distinct,), fact.pads), index]


@rule("Where")
def where(op: Op) -> Fact:
    """The positions of entries that a mask chooses."""
    fact = op.ins[0].plain()
    into, rank, origin = fact.axes[0], dim(len(fact.axes)), op.operation.inputs[0]
    while origin.op.type in ("Identity", "Reshape", "Snapshot", "StopGradient"):
        origin = origin.op.inputs[0]
    step, pads = origin.name, fact.pads | lists_in(fact.axes)
    if fact.kind == "fixed":
        lists = [(f"longest:{name}",) for name in pads]
        return Fact("fixed", (op.derived(lists), rank), pads)
    role, name = fact.role
    part = elements(name if role == "mask" else f"?{step}")
    if role == "mask":
        pads = fact.pads
    elif fact.same and into[0] == R[0] and not lists_in(fact.axes):
        part = (R[0], f"?{step}")
    elif len(fact.axes) == len(into) == 1 and str(into[0]).startswith("elements:"):
        part = elements(chosen(list_of(into), step))
    if len(fact.axes) == 1:
        return Fact("ids", (part, ()), pads, of=into)
    require(into == R, "it is unknown which rows the entries belong to")
    return Fact("indices", (part, rank), pads, of=R)


def _listed(part: Axis, size: Axis, pads: frozenset[str] = frozenset()) -> list[Fact]:
    """The indices, values and dense shape of a sparse tensor with one list per row."""
    indices, held = Fact("indices", (part, (2,)), pads, of=R), Fact("rows", (part,), pads)
    return [indices, held, sizes([R, size])]


def handed_over(role: str, name: str) -> Fact:
    """The fact about a tensor that the converter made from the columns of a list feature."""
    if role == "splits":
        return Fact("splits", ((f"splits:{name}",),), of=f"splits:{name}")
    return _listed(elements(name), (f"longest:{name}",))[{"indices": 0, "shape": 2}[role]]


def _sparse(op: Op, indices: int, held: int, shape: int) -> tuple[Fact, Fact, list[Axis]]:
    """A sparse tensor whose first dimension is the rows: its indices, values and dense shape."""
    fact, own, found = op.ins[indices], op.ins[held].plain(), op.entries(shape)
    of_rows = fact.kind == "indices" and fact.of == R and has_rows(fact.axes[0])
    require(of_rows and found[:1] == [R], "it is unknown which rows the positions belong to")
    more = equal(own.axes[0], fact.axes[0])[1] if own.axes else fixed([own])
    pads = own.pads | fact.pads | lists_in(fact.axes) | more
    return fact, replace(own, pads=pads), [each or () for each in found]


@rule("SparseToDense")
def to_dense(op: Op) -> Fact:
    fact, held, found = _sparse(op, 0, 2, 1)
    one_each = not fact.sizes or op.attr("validate_indices")
    require(one_each, "which of several entries at one position it takes is unknown")
    return values([held], found, fixed(op.ins[3:]))


@rule("SparseReshape")
def sparse_reshape(op: Op) -> list[Fact]:
    """The same two dimensions, however they are computed."""
    fact, before, wanted = op.ins[0], op.entries(1), op.entries(2)
    same = [a if b is None else b for a, b in zip(before, wanted, strict=True)]
    two = fact.kind == "indices" and len(wanted) == 2 and wanted.count(None) < 2
    same_rows = two and before == same and before[0] == R
    require(same_rows, "lists of different rows are merged, or get another width")
    return [fact, sizes(before)]


@rule("SparseReorder")
def reorder(op: Op) -> list[Fact]:
    """Entries with equal positions may be sorted otherwise beside other rows."""
    fact, held, _ = _sparse(op, 0, 1, 2)
    if not fact.sizes or not held.axes:
        return [fact, held]
    part = elements(chosen(list_of(fact.axes[0]), f"{_SORTED} {op.name}"))
    return [replace(each, axes=(part, *each.axes[1:])) for each in (fact, held)]


@rule("SparseFillEmptyRows")
def fill_empty_rows(op: Op) -> list[Fact]:
    fact, held, _ = _sparse(op, 0, 1, 2)
    filled = elements(chosen(list_of(fact.axes[0]), FILLED))
    return [
        replace(fact, axes=(filled, fact.axes[1])),
        Fact("rows", (filled,), held.pads | fixed(op.ins[3:])),
        Fact("rows", (R,), fact.pads),
        Fact("ids", fact.axes[:1], fact.pads, of=filled),
    ]


@rule("SparseSlice")
def sparse_slice(op: Op) -> list[Fact]:
    """Lists from a position on, cut to a length."""
    fact, held, found = _sparse(op, 0, 1, 2)
    start, (rows, wanted) = op.numbers(3), op.entries(4)
    every = rows == R or count(rows or ()) > 2**30
    fits = every and wanted and start[0] == 0 <= start[1] and len(found) == 2 and not fact.sizes
    require(fits, "rows are sliced")
    step = f"[{start[1]}:{wanted}]"
    part = elements(chosen(list_of(fact.axes[0]), step))
    size = derived([found[1], wanted], f"{found[1]}{step}")
    return _listed(part, size, held.pads | lists_in([wanted]))


@rule("SparseTensorDenseMatMul")
def sparse_mat_mul(op: Op) -> Fact:
    _, held, _ = _sparse(op, 0, 1, 2)
    require(not op.attr("adjoint_a") and not op.attr("adjoint_b"), "rows are summed")
    table = op.ins[3]
    return values([held], (R, *table.axes[1:]), fixed([table]) | lists_in(table.axes[:1]))


@rule("SparseCross", "SparseCrossV2", "SparseCrossHashed")
def cross(op: Op) -> list[Fact]:
    """Every combination of a row's entries; a dense list is crossed with what fills its end."""
    n = op.attr("N")
    sparse = [_sparse(op, index, n + index, 2 * n + index)[1] for index in range(n)]
    others = [fact.plain() for fact in op.ins[3 * n :]]
    dense = [fact for fact in others if len(fact.axes) == 2]
    of_rows = all(fact.axes[0] == R for fact in dense) and (sparse or dense)
    require(of_rows, "every row is combined with every other")
    pads = fixed(fact for fact in others if len(fact.axes) != 2)
    pads = pads.union(lists_in(one for fact in dense for one in fact.axes))
    pads = pads.union(*(fact.pads for fact in (*sparse, *dense)))
    if sparse or names(fact.axes[1] for fact in dense):
        return _listed(elements(f"?{op.name}"), (f"longest:?{op.name}",), pads)
    size = dim(*flat(fact.axes[1] for fact in dense))
    return _listed(dim(*R, *size), size, pads)


@rule("StringSplitV2", "StringSplit")
def split_strings(op: Op) -> list[Fact]:
    text = op.ins[0].plain()
    require(text.axes == (R,), "it is unknown which rows the strings belong to")
    pads = text.pads | fixed(op.ins[1:])
    return _listed(elements(f"?{op.name}"), (f"longest:?{op.name}",), pads)


_SEGMENTS = [f"SparseSegment{how}" for how in ("Sum", "Mean", "SqrtN")]
_SEGMENTS += [f"{op}WithNumSegments" for op in _SEGMENTS]
_SEGMENTS += [f"Segment{how}" for how in ("Sum", "Max", "Min", "Prod", "Mean")]
_SEGMENTS += [f"UnsortedSegment{how}" for how in ("Sum", "Max", "Min", "Prod")]


@rule(*_SEGMENTS)
def segments(op: Op) -> Fact:
    """Combines the entries of each row, or rows of a table that they look up."""
    data, *ids, rows = op.ins[: 2 + op.type.startswith("Sparse")]
    held, along = [data, *ids], (*ids, data)[0].axes
    if ids and ids[0].kind == "ids":
        held = [replace(data.plain(), pads=data.pads | _into(ids[0], data.axes[0]))]
    elif ids:
        apart(*data.axes)
    one_each = rows.kind == "ids" and rows.of == R and len(rows.axes) == 1
    require(one_each and (not ids or len(along) == 1), "segments may differ from rows")
    if "NumSegments" in op.type or op.type.startswith("Unsorted"):
        # Then rows without entries have a segment, too.
        of_rows = op.entries(len(op.ins) - 1) == [R]
        require(of_rows, "the number of segments is not the number of rows")
    else:
        every_row_has_one = str(rows.axes[0][0]).endswith(chosen("", FILLED))
        require(every_row_has_one, "trailing rows without entries would be missing")
    made = values(held, (along[0], *data.axes[1:]))
    pads = made.pads | rows.pads | equal(rows.axes[0], along[0])[1]
    pads |= lists_in([rows.axes[0], along[0]])
    return replace(made, axes=(R, *data.axes[1:]), pads=pads, same=False)


@rule("DenseBincount")
def count_values(op: Op) -> Fact:
    """How many of each value a row has."""
    ids, _, weights = op.ins
    require(weights.axes == ((0,),), "counts are weighted")
    require(len(ids.plain().axes) == 2, "values of all rows are counted")
    return values([ids], (ids.axes[0], op.size(1)), apart(ids.axes[1]))


@rule("RaggedTensorToTensor")
def ragged_to_dense(op: Op) -> Fact:
    """Makes each list a row, which is filled up to the longest or cut to a given length."""
    kinds, last, held = op.attr("row_partition_types"), op.ins[-1], op.ins[1].plain()
    role, name = last.role
    if kinds != [b"ROW_SPLITS"] or role != "splits":  # by the row of each entry
        by_row = kinds == [b"FIRST_DIM_SIZE", b"VALUE_ROWIDS"] and last.kind == "ids"
        one_list = by_row and last.of == R and op.entries(3) == [R]
        require(one_list, "lists are ragged in several dimensions")
        name = list_of(last.axes[0])
    wanted: list[Axis | None] = op.entries(0) if op.ins[0].axes else [None, None]
    of_rows = wanted[0] in (None, R) and len(wanted) > 1
    require(_SORTED not in name, "the order of a row's entries may depend on other rows")
    require(of_rows, "the output may have another number of rows")
    size = (f"longest:{name}",) if wanted[1] is None else wanted[1]
    pads = last.pads | equal(held.axes[0], elements(name))[1] | fixed(op.ins[2:3])
    return values([held], (R, size, *held.axes[1:]), pads)
