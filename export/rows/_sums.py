"""Rules for ops that compute one entry from several, such as products and sums."""

from collections.abc import Sequence

from colcast.export.rows._facts import (
    Axes,
    Axis,
    Fact,
    Kind,
    are_aligned,
    broadcast,
    has_rows,
    is_counted,
    is_of_rows,
    is_shared,
    labels,
    longest,
    sizes,
)
from colcast.export.rows._numbers import is_finite
from colcast.export.rows._op import Mixes, Op, as_value, rule, together

_NOTHING = {"Sum": 0.0, "Any": 0.0, "All": 1.0, "Prod": 1.0}
_NOT_OF_ZEROS = ("Prod", "ReduceJoin")  # ops whose result may not be 0 even if all entries are 0
_REDUCTIONS = (*_NOTHING, "Max", "Mean", "Min", "EuclideanNorm", "ReduceJoin")


@rule(*_REDUCTIONS)
def reduce(op: Op) -> Fact:
    fact, axes = op.inputs[0], op.axes(0)
    if fact.kind is Kind.SIZES:
        return _product_of_sizes(op, fact)
    gone = {op.axis_of(0, number) for number in op.numbers(1)}
    keep = op.attribute("keep_dims").b
    left = [
        () if number in gone else each
        for number, each in enumerate(axes)
        if keep or number not in gone
    ]
    of_lists = bool(fact.mark and fact.mark[0] == "length")
    if op.type == "Max" and of_lists and fact.mark and not has_rows(left):
        return sizes([(f"longest:{fact.mark[1]}",)], scalar=not left)
    fact = as_value(fact)
    lengths = fact.lengths | _spread_over(op.type, fact, axes, gone)
    fills = tuple(
        None if number in gone or fact.fill(number) != 0.0 or op.type in _NOT_OF_ZEROS else 0.0
        for number in range(len(axes))
        if keep or number not in gone
    )
    return Fact(fact.kind, tuple(left), lengths, fills if 0.0 in fills else ())


@rule("ArgMax", "ArgMin")
def reduce_to_position(op: Op) -> Fact:
    fact, number = as_value(op.inputs[0]), op.axis_of(0, op.number(1))
    axes = op.axes(0)
    if has_rows([axes[number]]):
        raise Mixes("the position of a row is found")
    kind = "Max" if op.type == "ArgMax" else "Min"
    lengths = fact.lengths | _spread_over(kind, fact, axes, {number})
    return Fact(fact.kind, (*axes[:number], *axes[number + 1 :]), lengths)


@rule("Softmax", "LogSoftmax")
def softmax(op: Op) -> Fact:
    """Normalizes the entries of the last dimension against each other.

    A mask does not remove padding: if all entries of a row are masked, as in an empty list, padding
    gets as much weight as they do.
    """
    fact, last = as_value(op.inputs[0]), op.axes(0)[-1:]
    if has_rows(last):
        raise Mixes("rows are normalized against each other")
    return fact.changed(lengths=fact.lengths | longest(last))


@rule("Cumsum", "Cumprod")
def cumulate(op: Op) -> Fact:
    """Combines each entry with all entries before it along a dimension."""
    fact, number = op.inputs[0], op.axis_of(0, op.number(1))
    each = op.axes(0)[number]
    backwards, exclusive = op.attribute("reverse").b, op.attribute("exclusive").b
    of_lists = bool(fact.mark and fact.mark[0] == "length") and len(op.axes(0)) == 1
    if of_lists and fact.mark and op.type == "Cumsum" and not backwards:
        return Fact(Kind.SPLITS, (each,), mark=("starts" if exclusive else "ends", fact.mark[1]))
    if has_rows([each]):
        raise Mixes("rows are accumulated")
    fact = as_value(fact)
    return fact.changed(lengths=fact.lengths | (longest([each]) if backwards else frozenset()))


@rule("TopKV2")
def top_k(op: Op) -> list[Fact]:
    """Finds the largest entries of the last dimension, and their positions."""
    fact, axes = as_value(op.inputs[0]), op.axes(0)
    if has_rows([axes[-1]]):
        raise Mixes("the top rows are chosen")
    (count,) = op.entries(1)
    if count is None or (count != axes[-1] and not is_counted(count)):
        raise Mixes("the number of entries to choose is unknown before a run")
    lengths = fact.lengths | _spread_over("Max", fact, axes, {len(axes) - 1})
    made = fact.changed(axes=(*axes[:-1], count), lengths=lengths)
    return [made, made]


@rule("MatMul", "_FusedMatMul")
def mat_mul(op: Op) -> Fact:
    """Multiplies each row of one matrix by each column of the other."""
    flip = (op.attribute("transpose_a").b, op.attribute("transpose_b").b)
    return _product(op, flip)


@rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(op: Op) -> Fact:
    """Multiplies each pair of matrices in a batch."""
    return _product(op, (op.attribute("adj_x").b, op.attribute("adj_y").b))


@rule("Einsum")
def einsum(op: Op) -> Fact:
    """Sums products over the letters missing from the result."""
    left, _, right = op.attribute("equation").s.decode().partition("->")
    terms = left.split(",")
    facts = [as_value(fact) for fact in op.inputs]
    if "." in left or len(terms) != len(facts):
        raise Mixes("the equation has an ellipsis")
    sizes_: dict[str, Axis] = {}
    kind, lengths = together(facts)
    silent: set[str] = set()
    for index, (letters, fact) in enumerate(zip(terms, facts, strict=True)):
        for number, (letter, each) in enumerate(zip(letters, op.axes(index), strict=True)):
            before = sizes_.setdefault(letter, each)
            if before != each and (has_rows([before]) or has_rows([each])):
                raise Mixes("every row is combined with every other")
            others = facts[:index] + facts[index + 1 :]
            if fact.fill(number) == 0.0 and each and not any(f.may_break for f in others):
                silent.add(letter)
    for letter, each in sizes_.items():
        if letter in right:
            continue
        if has_rows([each]):
            raise Mixes("rows are summed")
        if letter not in silent:
            lengths |= longest([each])
    _rows_meet([sizes_[letter] for letter in right])
    return Fact(kind, tuple(sizes_[letter] for letter in right), lengths)


@rule("Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool")
def convolve(op: Op) -> Fact:
    """Combines neighbours in the inner dimensions of images [rows, height, width, channels]."""
    fact, axes = as_value(op.inputs[0]), op.axes(0)
    if any(other.kind is not Kind.FIXED for other in op.inputs[1:]):
        raise Mixes("a filter depends on rows")
    if op.attribute("data_format").s == b"NCHW" or has_rows(axes[1:]):
        raise Mixes("neighbouring rows are combined")
    declared = op.shape_of(0)
    if declared is None:
        raise Mixes("the rank of the result is unknown")
    made = [
        (size,) if size is not None and size > 1 else () if size == 1 else (f"size:{op.name}/{n}",)
        for n, size in enumerate(declared[1:])
    ]
    return fact.changed(axes=(axes[0], *made), lengths=fact.lengths | longest(axes[1:]))


@rule("L2Loss")
def of_all(op: Op) -> Fact:
    """Computes one number from all entries."""
    fact = as_value(op.inputs[0])
    if fact.kind is not Kind.FIXED or has_rows(op.axes(0)):
        raise Mixes("rows are summed")
    return fact.changed(axes=(), lengths=fact.lengths | longest(op.axes(0)))


@rule("Bincount", "DenseBincount")
def count_values(op: Op) -> Fact:
    """Counts how often each number occurs in a row, or how many entries each row has."""
    fact, axes, sizes_ = op.inputs[0], op.axes(0), op.entries(1)
    if fact.refers is not None and len(axes) == 1 and sizes_ == [fact.refers]:
        if is_shared(fact.refers):
            raise Mixes("rows with equal values are counted")
        return _counted_by_row(op, fact.refers)
    fact, weights = as_value(fact), as_value(op.inputs[2])
    if op.type == "Bincount" or len(axes) != 2 or has_rows([axes[1]]):
        raise Mixes("the values of all rows are counted together")
    (width,) = sizes_
    if width is None or any(isinstance(factor, str) for factor in width):
        raise Mixes("the number of bins depends on the request's sizes")
    lengths = fact.lengths | weights.lengths | longest([axes[1]])
    return Fact(Kind.ROWS, (axes[0], width), lengths)


def _counted_by_row(op: Op, rows: Axis) -> Fact:
    """The number of entries for each row number, which is the length of the row's list."""
    (along,), weights = op.axes(0), as_value(op.inputs[2])
    lengths = op.inputs[0].lengths | weights.lengths
    if weights.axes != ((0,),):
        if weights.axes is None or not are_aligned(weights.axes[0], along):
            raise Mixes("weights belong to other entries")
        return Fact(Kind.ROWS, (rows,), lengths)
    label = str(along[0]) if len(along) == 1 else ""
    is_binary = op.type == "DenseBincount" and op.attribute("binary_output").b
    of_lists = label.startswith("elements:") and not is_binary
    mark = ("length", label.removeprefix("elements:")) if of_lists else None
    return Fact(Kind.ROWS, (rows,), lengths, mark=mark)


def _spread_over(type_: str, fact: Fact, axes: Axes, gone: set[int]) -> frozenset[str]:
    """The lists whose length affects the result of reducing the dimensions `gone`.

    Raises:
        Mixes: the reduction combines rows.
    """
    over = [axes[number] for number in gone]
    same = fact.kind is Kind.FIXED and type_ in ("All", "Any", "Max", "Mean", "Min")
    if has_rows(over) and not (same and _never_empty(over)):
        raise Mixes("it reduces over rows")
    found = frozenset[str]()
    for number in gone:
        fill = fact.fill(number)
        nothing = _NOTHING.get(type_)
        if fill is None or nothing is None or fill != nothing:
            found |= longest([axes[number]])
    return found


def _never_empty(axes: Sequence[Axis]) -> bool:
    """Whether dimensions have entries whenever there are rows; all lists may be empty."""
    return all(label.startswith("rows:") for label in labels(axes) if is_of_rows(label))


def _product_of_sizes(op: Op, fact: Fact) -> Fact:
    if op.type != "Prod" or fact.sizes is None or None in fact.sizes:
        return as_value(fact).changed(axes=((),) if op.attribute("keep_dims").b else ())
    factors = [factor for each in fact.sizes for factor in each or ()]
    return sizes([tuple(factors)], scalar=not op.attribute("keep_dims").b)


def _product(op: Op, flip: Sequence[bool]) -> Fact:
    facts = [as_value(fact) for fact in op.inputs[:2]]
    shapes = [list(op.axes(index)) for index in (0, 1)]
    inner = []
    numbers = []
    for flipped, side, shape in zip(flip, (1, 0), shapes, strict=True):
        number = len(shape) - 2 + (side ^ int(flipped))
        inner.append(shape[number])
        numbers.append(number)
    if has_rows(inner):
        raise Mixes("rows are summed")
    outer = [
        shape[n ^ 1 if len(shape) == 2 else _other(n, len(shape))]
        for shape, n in zip(shapes, numbers, strict=True)
    ]
    met = broadcast(tuple(shapes[0][:-2]), tuple(shapes[1][:-2]))
    if met is None:
        raise Mixes("every row is combined with every other")
    kind, lengths = together(facts)
    silent = any(
        fact.fill(number) == 0.0
        and longest([shape[number]])
        and is_finite(other, other.fill(of_other))
        for fact, number, shape, other, of_other in zip(
            facts, numbers, shapes, facts[::-1], numbers[::-1], strict=True
        )
    )
    tied = frozenset() if silent else longest(inner)
    axes = (*met[0], *outer)
    _rows_meet(axes)
    fills = tuple(
        0.0
        if number == len(axes) - 2
        and facts[0].fill(_other(numbers[0], len(shapes[0]))) == 0.0
        and not facts[1].may_break
        and longest([each])
        else None
        for number, each in enumerate(axes)
    )
    biased = op.type == "_FusedMatMul"
    return Fact(kind, axes, lengths | tied | met[1], fills if 0.0 in fills and not biased else ())


def _other(number: int, rank: int) -> int:
    """The other one of the last two dimensions."""
    return 2 * rank - 3 - number


def _rows_meet(axes: Sequence[Axis]) -> None:
    if sum(has_rows([each]) for each in axes) > 1:
        raise Mixes("every row is combined with every other")
