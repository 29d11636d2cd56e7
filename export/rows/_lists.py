"""Sparse and ragged tensors, and ops that combine the entries of each row."""

from collections.abc import Sequence
from dataclasses import replace

from colcast.export.rows._facts import (
    FILLED,
    Axis,
    Fact,
    Mixes,
    R,
    aligned,
    chosen,
    dim,
    elements,
    every_row_has_one,
    flat,
    has_rows,
    list_of,
    lists_in,
    names,
    values,
    width,
)
from colcast.export.rows._op import Op, meeting, rule
from colcast.export.rows._reduce import reduced


def handed_over(role: str, name: str) -> Fact:
    """The fact about a tensor that the converter made from the columns of a list feature."""
    if role == "indices":
        return Fact("indices", (elements(name), (2,)), of=R)
    if role == "shape":
        return Fact("size", ((2,),), sizes=(R, (f"longest:{name}",)))
    return Fact("splits", ((f"splits:{name}",),), of=f"splits:{name}")


def _sparse(op: Op, indices: int, held: int, shape: int) -> tuple[Fact, Fact, list[Axis]]:
    """A sparse tensor whose first dimension is the rows: its indices, values and dense shape."""
    fact, own, sizes = op.ins[indices], op.ins[held].plain(), op.entries(shape)
    if fact.kind != "indices" or fact.of != R or not has_rows(fact.axes[0]) or sizes[:1] != [R]:
        raise Mixes("it is unknown which rows the positions belong to")
    if own.axes and not aligned(own.axes[0], fact.axes[0]):
        raise Mixes(meeting(own.axes[0], fact.axes[0]))
    if not own.axes and own.kind != "fixed":
        raise Mixes("one row's value fills all rows")
    pads = own.pads | fact.pads | lists_in(fact.axes)
    return fact, replace(own, pads=pads), [each or () for each in sizes]


def _default(op: Op, index: int) -> Fact:
    fact = op.ins[index].plain()
    if fact.kind != "fixed":
        raise Mixes("one row's value fills other rows")
    return fact


@rule("SparseToDense")
def to_dense(op: Op) -> Fact:
    fact, held, sizes = _sparse(op, 0, 2, 1)
    if fact.sizes and not op.attr("validate_indices"):
        raise Mixes("which of several entries at one position it takes is unknown")
    return values([held, _default(op, 3)], sizes)


@rule("SparseReshape")
def sparse_reshape(op: Op) -> list[Fact]:
    """The same two dimensions, however they are computed."""
    fact, before, wanted = op.ins[0], op.entries(1), op.entries(2)
    same = [a if b is None else b for a, b in zip(before, wanted, strict=False)]
    if fact.kind != "indices" or len(wanted) != 2 or wanted.count(None) > 1 or before != same:
        raise Mixes("lists of different rows are merged, or get another width")
    if before[0] != R:
        raise Mixes("it is unknown which rows the positions belong to")
    return [fact, Fact("size", ((2,),), sizes=tuple(before))]


_SORTED = "sorted by"


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
    pads = held.pads | _default(op, 3).pads
    filled = elements(chosen(list_of(fact.axes[0]), FILLED))
    return [
        replace(fact, axes=(filled, fact.axes[1])),
        Fact("rows", (filled,), pads),
        Fact("rows", (R,), fact.pads),
        Fact("ids", fact.axes[:1], fact.pads, of=filled),
    ]


@rule("SparseSlice")
def sparse_slice(op: Op) -> list[Fact]:
    """Lists from a position on, cut to a length."""
    fact, held, sizes = _sparse(op, 0, 1, 2)
    start, (rows, wanted) = op.numbers(3), op.entries(4)
    every = rows == R or (rows and not names([rows]) and int(rows[0]) > 2**30)
    if start[0] or start[1] < 0 or not every or not wanted or len(sizes) != 2 or fact.sizes:
        raise Mixes("rows are sliced")
    step = f"[{start[1]}:{wanted}]"
    part = elements(chosen(list_of(fact.axes[0]), step))
    lists = lists_in([sizes[1], wanted])
    size = width(lists, f"{sizes[1]}{step}") if lists else (f"?{op.name}",)
    pads = held.pads | lists_in([wanted])
    indices = Fact("indices", (part, fact.axes[1]), fact.pads | lists_in([wanted]), of=R)
    return [indices, Fact("rows", (part,), pads), Fact("size", ((2,),), sizes=(R, size))]


@rule("SparseTensorDenseMatMul")
def sparse_mat_mul(op: Op) -> Fact:
    _, held, _ = _sparse(op, 0, 1, 2)
    table = op.ins[3].plain()
    if table.kind != "fixed" or op.attr("adjoint_a") or op.attr("adjoint_b"):
        raise Mixes("rows are summed")
    return values([held, table], (R, *table.axes[1:]), lists_in(table.axes[:1]))


@rule("SparseReduceSum", "SparseReduceMax")
def sparse_reduce(op: Op) -> Fact:
    _, held, sizes = _sparse(op, 0, 1, 2)
    if [number % 2 for number in op.numbers(3)] != [1] or len(sizes) != 2:
        raise Mixes("it reduces over rows")
    return values([held], (R, *[()] * op.attr("keep_dims")))


@rule("SparseCross", "SparseCrossV2", "SparseCrossHashed")
def cross(op: Op) -> list[Fact]:
    """Every combination of a row's entries; a dense list is crossed with what fills its end."""
    n = op.attr("N")
    sparse = [_sparse(op, index, n + index, 2 * n + index) for index in range(n)]
    others = [fact.plain() for fact in op.ins[3 * n :]]
    dense = [fact for fact in others if len(fact.axes) == 2]
    if any(fact.axes[0] != R for fact in dense) or not (sparse or dense):
        raise Mixes("every row is combined with every other")
    if any(fact.kind != "fixed" for fact in others if len(fact.axes) != 2):
        raise Mixes("rows decide how others are hashed")
    each = [held for _, held, _ in sparse] + others
    pads = lists_in(one for fact in dense for one in fact.axes)
    pads = pads.union(*(fact.pads for fact in each))
    part = elements(f"?{op.name}")
    size: Axis = (f"longest:?{op.name}",)
    if not sparse and not names(fact.axes[1] for fact in dense):
        size = dim(*flat(fact.axes[1] for fact in dense))
        part = dim(*R, *size)
    return [
        Fact("indices", (part, (2,)), pads, of=R),
        Fact("rows", (part,), pads),
        Fact("size", ((2,),), sizes=(R, size)),
    ]


@rule("StringSplitV2", "StringSplit")
def split_strings(op: Op) -> list[Fact]:
    text = op.ins[0].plain()
    if text.axes != (R,) or any(fact.plain().kind != "fixed" for fact in op.ins[1:]):
        raise Mixes("it is unknown which rows the strings belong to")
    pads = text.pads.union(*(fact.pads for fact in op.ins[1:]))
    name = f"?{op.name}"
    words = Fact("rows", (elements(name),), pads)
    return [replace(handed_over("indices", name), pads=pads), words, handed_over("shape", name)]


_SPARSE = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")


@rule(*_SPARSE, *(f"{op}WithNumSegments" for op in _SPARSE))
def sparse_segments(op: Op) -> Fact:
    """Looks up rows of a table and combines them by segment."""
    data, ids, rows = op.ins[:3]
    if ids.kind == "ids":
        if not isinstance(ids.of, tuple) or not aligned(ids.of, data.axes[0]):
            raise Mixes("positions in one dimension are used in another")
        held = replace(data.plain(), pads=data.pads | ids.pads)
        return _by_rows(op, [held], ids.axes, rows, data.axes[1:], 3)
    if has_rows(*data.axes):
        raise Mixes("positions may point to other rows")
    return _by_rows(op, [data, ids], ids.axes, rows, data.axes[1:], 3)


@rule(*(f"Segment{how}" for how in ("Sum", "Max", "Min", "Prod", "Mean")))
@rule(*(f"UnsortedSegment{how}" for how in ("Sum", "Max", "Min", "Prod")))
def segments(op: Op) -> Fact:
    return _by_rows(op, op.ins[:1], op.ins[0].axes[:1], op.ins[1], op.ins[0].axes[1:], 2)


def _by_rows(
    op: Op,
    facts: Sequence[Fact],
    along: Sequence[Axis],
    rows: Fact,
    rest: Sequence[Axis],
    count: int,
) -> Fact:
    """Combines the entries of each row; every row needs one, or the number of rows is given."""
    if rows.kind != "ids" or rows.of != R or len(rows.axes) != 1 or len(along) != 1:
        raise Mixes("segments may differ from rows")
    if not aligned(rows.axes[0], along[0]):
        raise Mixes(meeting(rows.axes[0], along[0]))
    if "NumSegments" in op.type or op.type.startswith("Unsorted"):
        if op.entries(count) != [R]:
            raise Mixes("the number of segments is not the number of rows")
    elif not every_row_has_one(rows.axes[0]):
        raise Mixes("trailing rows without entries would be missing")
    made = values(facts, (along[0], *rest))
    pads = made.pads | rows.pads | lists_in([rows.axes[0], along[0]])
    return replace(made, axes=(R, *rest), pads=pads, same=False)


@rule("DenseBincount")
def count_values(op: Op) -> Fact:
    """How many entries each row has, or how many of each value."""
    ids, _, weights = op.ins
    (size,) = op.entries(1)
    if weights.plain().kind != "fixed" or weights.axes != ((0,),) or size is None:
        raise Mixes("counts are weighted, or their number is unknown")
    of_rows = ids.kind == "ids" and ids.of == R and len(ids.axes) == 1 and size == R
    if of_rows and not op.attr("binary_output"):
        pads = ids.pads | lists_in(ids.axes)
        return Fact("rows", (R,), pads, of=f"lengths:{list_of(ids.axes[0])}")
    if len(ids.plain().axes) != 2:
        raise Mixes("values of all rows are counted")
    return reduced(ids, ids.axes[1:], (ids.axes[0], size))


@rule("RaggedTensorToTensor")
def ragged_to_dense(op: Op) -> Fact:
    """Makes each list a row, which is filled up to the longest or cut to a given length."""
    name, pads = _partition(op)
    held, default = op.ins[1].plain(), _default(op, 2)
    if not aligned(held.axes[0], elements(name)):
        raise Mixes(meeting(held.axes[0], elements(name)))
    wanted: list[Axis | None] = op.entries(0) if op.ins[0].axes else [None, None]
    if _SORTED in name:
        raise Mixes("the order of a row's entries may depend on other rows")
    if wanted[0] not in (None, R) or len(wanted) < 2:
        raise Mixes("the output may have another number of rows")
    size = (f"longest:{name}",) if wanted[1] is None else wanted[1]
    return values([held, default], (R, size, *held.axes[1:]), pads)


def _partition(op: Op) -> tuple[str, frozenset[str]]:
    """The list whose entries a ragged tensor has, by row splits or by the row of each entry."""
    kinds = [kind.decode() for kind in op.attr("row_partition_types")]
    last = op.ins[-1]
    role, name = last.role
    if kinds == ["ROW_SPLITS"] and role == "splits":
        return name, last.pads
    of_rows = last.kind == "ids" and last.of == R
    if kinds == ["FIRST_DIM_SIZE", "VALUE_ROWIDS"] and of_rows and op.entries(3) == [R]:
        return list_of(last.axes[0]), last.pads
    raise Mixes("lists are ragged in several dimensions")


@rule("RaggedTensorToSparse")
def ragged_to_sparse(op: Op) -> list[Fact]:
    splits, held = op.ins[0], op.ins[-1].plain()
    role, name = splits.role
    if len(op.ins) != 2 or role != "splits" or not aligned(held.axes[0], elements(name)):
        raise Mixes("lists are ragged in several dimensions")
    indices = replace(handed_over("indices", name), pads=splits.pads)
    held = replace(held, pads=held.pads | splits.pads)
    return [indices, held, handed_over("shape", name)]
