"""Rules for ops on lists: sparse and ragged tensors, and sums by segments."""

from collections.abc import Sequence

from colcast.export.rows._facts import (
    Axis,
    Fact,
    Kind,
    are_aligned,
    axis,
    fixed,
    has_rows,
    is_shared,
    longest,
    sizes,
)
from colcast.export.rows._free import is_of_no_run
from colcast.export.rows._op import Mixes, Op, as_value, rule, together
from colcast.export.rows._shapes import reshaped

_COMBINERS = ("Sum", "Max", "Min", "Prod")
_SPARSE = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")


@rule("SparseToDense")
def to_dense(op: Op) -> Fact:
    """Makes each list a row of a tensor, padded after its end."""
    indices, values, default = op.inputs[0], as_value(op.inputs[2]), as_value(op.inputs[3])
    rows, *inner = _dense_shape(op, 1)
    _check_indices(indices, rows)
    if default.kind is not Kind.FIXED:
        raise Mixes("one row's value fills all rows")
    axes = (rows, *inner)
    fills = tuple(default.uniform if longest([each]) else None for each in axes)
    return Fact(Kind.ROWS, axes, values.lengths | indices.lengths, fills)


@rule("SparseReshape")
def reshape(op: Op) -> list[Fact]:
    """Changes the dimensions that follow the rows."""
    indices = op.inputs[0]
    rows, *inner = _dense_shape(op, 1)
    _check_indices(indices, rows)
    wanted = op.entries(2)
    first, *rest = wanted
    if first is None and rest == inner:
        first = rows
    if first != rows:
        raise Mixes("lists of different rows are merged")
    regrouped = reshaped(fixed(tuple(inner)), tuple(inner), rest)
    made = regrouped.axes or ()
    shape = sizes([rows, *made])
    width = (len(wanted),) if len(wanted) > 1 else ()
    places = (rows, *[None] * len(made))
    lengths = indices.lengths | regrouped.lengths
    return [Fact(Kind.ROWS, (op.axes(0)[0], width), lengths, places=places), shape]


@rule("SparseReorder")
def reorder(op: Op) -> list[Fact]:
    rows, *_ = _dense_shape(op, 2)
    _check_indices(op.inputs[0], rows)
    return [op.inputs[0], as_value(op.inputs[1])]


@rule("SparseFillEmptyRows")
def fill_empty_rows(op: Op) -> list[Fact]:
    """Adds a value to each row that has none."""
    indices, values, default = op.inputs[0], as_value(op.inputs[1]), as_value(op.inputs[3])
    rows, *_ = _dense_shape(op, 2)
    _check_indices(indices, rows)
    if default.kind is not Kind.FIXED:
        raise Mixes("one row's value fills other rows")
    lists = f"{_lists_of(op.axes(0)[0])}"
    filled = (f"elements:+{lists}",)
    lengths = indices.lengths | values.lengths
    return [
        Fact(Kind.ROWS, (filled, op.axes(0)[1]), indices.lengths, places=indices.places),
        Fact(Kind.ROWS, (filled,), lengths),
        Fact(Kind.ROWS, (rows,), indices.lengths),
        Fact(Kind.ROWS, op.axes(0)[:1], lengths, refers=filled),
    ]


@rule(*_SPARSE, *(f"{op}WithNumSegments" for op in _SPARSE))
def sparse_segments(op: Op) -> Fact:
    """Looks up rows of a table and sums or averages them by segment."""
    data, index, segments = as_value(op.inputs[0]), op.inputs[1], op.inputs[2]
    into = op.axes(0)[0]
    if index.refers is None:
        index = as_value(index)
        if has_rows([into]):
            raise Mixes("positions may point to other rows")
    elif not are_aligned(index.refers, into):
        raise Mixes("positions in one dimension are used in another")
    rows = _segments(op, op.axes(1)[0], segments, 3)
    lengths = data.lengths | index.lengths | segments.lengths
    return Fact(Kind.ROWS, (rows, *op.axes(0)[1:]), lengths)


@rule(*(f"Segment{op}" for op in (*_COMBINERS, "Mean")))
@rule(*(f"UnsortedSegment{op}" for op in _COMBINERS))
def segments(op: Op) -> Fact:
    """Reduces the elements of each segment, for example to their sum."""
    data, ids = as_value(op.inputs[0]), op.inputs[1]
    if len(op.axes(1)) != 1:
        raise Mixes("segments have several dimensions")
    if op.type.startswith("Unsorted") and all(map(is_of_no_run, op.inputs)):
        (number,) = op.entries(2)
        return fixed((number or (), *op.axes(0)[1:]))
    rows = _segments(op, op.axes(0)[0], ids, 2)
    return Fact(Kind.ROWS, (rows, *op.axes(0)[1:]), data.lengths | ids.lengths)


@rule("RaggedTensorToTensor")
def ragged_to_dense(op: Op) -> Fact:
    """Makes each list a row of a tensor, padded after its end or truncated."""
    values, default = as_value(op.inputs[1]), as_value(op.inputs[2])
    elements, rows = _partition(op)
    if not op.axes(1) or not are_aligned(op.axes(1)[0], elements):
        raise Mixes("values and splits belong to different lists")
    lists = _lists_of(elements)
    wanted: Sequence[Axis | None] = [None, None]
    if op.inputs[0].axes:
        wanted = op.entries(0)
    width = wanted[1] if len(wanted) > 1 and wanted[1] is not None else (f"longest:{lists}",)
    if wanted and wanted[0] not in (None, rows):
        raise Mixes("the output may have another number of rows")
    axes = (rows, width, *op.axes(1)[1:])
    fills = tuple(default.uniform if longest([each]) else None for each in axes)
    return Fact(Kind.ROWS, axes, values.lengths, fills)


def _partition(op: Op) -> tuple[Axis, Axis]:
    """Two dimensions: the elements of the lists, and the rows that they belong to."""
    kinds = [kind.decode() for kind in op.attribute("row_partition_types").list.s]
    last = op.inputs[-1]
    if kinds == ["ROW_SPLITS"] and last.mark and last.mark[0] == "splits":
        lists = last.mark[1]
        return (f"elements:{lists}",), (f"rows:{lists.rpartition('@')[2]}",)
    by_ids = kinds == ["FIRST_DIM_SIZE", "VALUE_ROWIDS"] and last.refers
    if by_ids and last.refers and last.axes and op.entries(3) == [last.refers]:
        _check_apart(last.refers)
        return last.axes[0], last.refers
    raise Mixes("lists are ragged in several dimensions")


@rule("StringSplitV2", "StringSplit")
def split_strings(op: Op) -> list[Fact]:
    """Splits each string into words, a sparse tensor."""
    fact = as_value(op.inputs[0])
    (rows,) = op.axes(0)
    lists = f"?{op.name}@{_lists_of(rows).rpartition('@')[2]}"
    elements = (f"elements:{lists}",)
    return [
        Fact(Kind.ROWS, (elements, (2,)), fact.lengths, places=(rows, None)),
        Fact(Kind.ROWS, (elements,), fact.lengths),
        sizes([rows, (f"longest:{lists}",)]),
    ]


@rule("SparseCross", "SparseCrossV2", "SparseCrossHashed")
def cross(op: Op) -> list[Fact]:
    """Crosses features: outputs every combination of a row's elements."""
    sparse = op.attributes["N"].i
    shapes = range(2 * sparse, 3 * sparse)
    rows: Axis | None = op.entries(2 * sparse)[0] if sparse else None
    facts = [as_value(fact) for fact in op.inputs[sparse : 2 * sparse]]
    dense = [index for index in range(3 * sparse, len(op.inputs)) if len(op.axes(index)) == 2]
    for index in dense:
        facts.append(as_value(op.inputs[index]))
        rows = rows or op.axes(index)[0]
        if op.axes(index)[0] != rows:
            raise Mixes("every row is combined with every other")
    if rows is None or not has_rows([rows]):
        raise Mixes("its rows are unknown")
    for number, index in enumerate(shapes):
        _check_indices(op.inputs[number], op.entries(index)[0])
        if op.entries(index)[0] != rows:
            raise Mixes("every row is combined with every other")
    lists = f"?{op.name}@{_lists_of(rows).rpartition('@')[2]}"
    elements: Axis = (f"elements:{lists}",)
    width: Axis = (f"longest:{lists}",)
    inner = [op.axes(index)[1] for index in dense]  # a dense list is crossed with its padding
    if not sparse and all(isinstance(factor, int) for each in inner for factor in each):
        width = axis(*(factor for each in inner for factor in each))
        elements = axis(*rows, *width)
    _, lengths = together([*facts, *map(as_value, op.inputs[3 * sparse :])])
    lengths |= longest(inner)
    return [
        Fact(Kind.ROWS, (elements, (2,)), lengths, places=(rows, None)),
        Fact(Kind.ROWS, (elements,), lengths),
        sizes([rows, width]),
    ]


@rule("SparseTensorDenseMatMul")
def sparse_mat_mul(op: Op) -> Fact:
    """Multiplies each row's weights by a table."""
    indices, values, table = op.inputs[0], as_value(op.inputs[1]), as_value(op.inputs[3])
    rows, *_ = _dense_shape(op, 2)
    _check_indices(indices, rows)
    if table.kind is not Kind.FIXED or op.attribute("adjoint_a").b or op.attribute("adjoint_b").b:
        raise Mixes("rows are summed")
    return Fact(Kind.ROWS, (rows, *op.axes(3)[1:]), values.lengths | indices.lengths)


@rule("SparseReduceSum", "SparseReduceMax")
def sparse_reduce(op: Op) -> Fact:
    """Sums each row's elements, or finds the largest."""
    indices, values = op.inputs[0], as_value(op.inputs[1])
    shape = _dense_shape(op, 2)
    _check_indices(indices, shape[0])
    gone = {number % len(shape) for number in op.numbers(3)}
    if 0 in gone:
        raise Mixes("it reduces over rows")
    keep = op.attribute("keep_dims").b
    axes = [() if n in gone else each for n, each in enumerate(shape) if keep or n not in gone]
    return Fact(Kind.ROWS, tuple(axes), values.lengths | indices.lengths)


@rule("RaggedTensorToSparse")
def ragged_to_sparse(op: Op) -> list[Fact]:
    """Computes the positions of elements within their rows."""
    splits, values = op.inputs[0], as_value(op.inputs[-1])
    if len(op.inputs) != 2 or not splits.mark or splits.mark[0] != "splits":
        raise Mixes("lists are ragged in several dimensions")
    lists = splits.mark[1]
    rows = (f"rows:{lists.rpartition('@')[2]}",)
    elements = (f"elements:{lists}",)
    return [
        Fact(Kind.ROWS, (elements, (2,)), values.lengths, places=(rows, None)),
        values,
        sizes([rows, (f"longest:{lists}",)]),
    ]


def _dense_shape(op: Op, index: int) -> list[Axis]:
    """The dimensions of a sparse tensor; raises Mixes unless the first one has rows."""
    shape = op.entries(index)
    if not shape or shape[0] is None or not has_rows(shape[:1]):
        raise Mixes("the first dimension of a sparse tensor is not the rows")
    return [each if each is not None else (f"size:{op.name}/{n}",) for n, each in enumerate(shape)]


def _check_apart(rows: Axis) -> None:
    if is_shared(rows):
        raise Mixes("rows with equal values are combined")


def _check_indices(indices: Fact, rows: Axis | None) -> None:
    _check_apart(rows or ())
    if indices.places is None or indices.places[0] != rows or any(indices.places[1:]):
        raise Mixes("it is unknown which rows the positions belong to")


def _segments(op: Op, along: Axis, ids: Fact, count: int) -> Axis:
    """The dimension of the results: the rows that the segments belong to."""
    if ids.refers is None or not ids.axes or not has_rows([ids.refers]):
        raise Mixes("segments may differ from rows")
    _check_apart(ids.refers)
    if not are_aligned(ids.axes[0], along):
        raise Mixes("segments may differ from rows")
    if "NumSegments" in op.type or op.type.startswith("Unsorted"):
        if op.entries(count) != [ids.refers]:
            raise Mixes("the number of segments is not the number of rows")
        return ids.refers
    # The op does not know the number of rows, so it omits trailing rows without elements.
    if not str(along[0]).startswith("elements:+"):
        raise Mixes("trailing rows without elements would be missing")
    return ids.refers


def _lists_of(each: Axis) -> str:
    for factor in each:
        if isinstance(factor, str) and factor.startswith("elements:"):
            return factor.removeprefix("elements:")
        if isinstance(factor, str) and factor.startswith("rows:"):
            return "@" + factor.removeprefix("rows:")
    raise Mixes("rows belong to no domain")
