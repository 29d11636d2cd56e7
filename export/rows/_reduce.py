"""Reductions and products over dimensions without rows; over a list's width they name the list."""

from collections.abc import Iterable
from dataclasses import replace

from colcast.export.rows._facts import (
    Axis,
    Fact,
    Mixes,
    R,
    dim,
    flat,
    has_rows,
    lists_in,
    names,
    values,
    width,
)
from colcast.export.rows._op import Op, broadcast, equal, rule


def reduced(fact: Fact, over: Iterable[Axis], axes: Iterable[Axis]) -> Fact:
    """Values computed from all entries of some dimensions of their own row."""
    over = list(over)
    if has_rows(*over):
        raise Mixes("rows are combined")
    return values([fact], axes, lists_in(over))


@rule("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm", "ReduceJoin")
def reduce(op: Op) -> Fact:
    fact = op.ins[0]
    gone = {op.axis(0, number) for number in op.numbers(1)}
    keep = op.attr("keep_dims")
    if not gone and op.type == "ReduceJoin":
        raise Mixes("it is unknown what it joins")
    if fact.kind == "size" and op.type == "Prod" and None not in fact.sizes and gone:
        return Fact("size", ((),) if keep else (), sizes=(dim(*flat(fact.sizes)),))
    role, name = fact.role
    if op.type == "Max" and role == "lengths" and fact.axes == (R,) and gone:
        return Fact("size", ((),) if keep else (), sizes=((f"longest:{name}",),))
    left = [() if n in gone else each for n, each in enumerate(fact.axes) if keep or n not in gone]
    over = [fact.axes[number] for number in gone]
    every_run_has_one = all(name == R[0] or name[0] == "?" for name in names(over))
    if fact.same and every_run_has_one and op.type in ("All", "Any", "Max", "Min"):
        kind = "rows" if has_rows(*left) else "fixed"
        return replace(fact, kind=kind, axes=tuple(left), same=kind == "rows")
    return reduced(fact, over, left)


@rule("ArgMax", "ArgMin")
def arg(op: Op) -> Fact:
    number, axes = op.axis(0, op.numbers(1)[0]), op.ins[0].axes
    return reduced(op.ins[0], [axes[number]], [*axes[:number], *axes[number + 1 :]])


@rule("Softmax", "LogSoftmax")
def softmax(op: Op) -> Fact:
    return reduced(op.ins[0], op.ins[0].axes[-1:], op.ins[0].axes)


@rule("Cumsum", "Cumprod")
def cumulate(op: Op) -> Fact:
    number, fact = op.axis(0, op.numbers(1)[0]), op.ins[0]
    role, name = fact.role
    plainly = op.type == "Cumsum" and not op.attr("exclusive") and not op.attr("reverse")
    if plainly and role == "lengths" and fact.axes == (R,):
        return Fact("splits", (R,), fact.pads, of=f"ends:{name}")
    return reduced(fact, [fact.axes[number]], fact.axes)


@rule("TopKV2")
def top_k(op: Op) -> list[Fact]:
    (count,), axes = op.entries(1), op.ins[0].axes
    if count is None or has_rows(count):
        raise Mixes("the number of entries to choose is unknown")
    return [reduced(op.ins[0], axes[-1:], (*axes[:-1], count))] * 2


@rule("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def product(op: Op) -> Fact:
    turned = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
    a, b = (fact.plain().axes for fact in op.ins)
    a = (*a[:-2], a[-1], a[-2]) if op.attr(turned[0]) else a
    b = (*b[:-2], b[-1], b[-2]) if op.attr(turned[1]) else b
    batch, pads = broadcast(op, a[:-2], b[:-2])
    if has_rows(a[-1], b[-2]):
        raise Mixes("rows are summed")
    return values(op.ins, (*batch, a[-2], b[-1]), pads | lists_in([a[-1], b[-2]]))


@rule("Einsum")
def einsum(op: Op) -> Fact:
    left, _, right = op.attr("equation").decode().partition("->")
    if "." in left or "->" not in op.attr("equation").decode():
        raise Mixes("the equation has an ellipsis or no output")
    sizes: dict[str, Axis] = {}
    pads = frozenset[str]()
    for letters, fact in zip(left.split(","), op.ins, strict=True):
        for letter, each in zip(letters, fact.axes, strict=True):
            sizes[letter], more = equal(sizes.get(letter, each), each)
            pads |= more
        if len(set(letters)) < len(letters):
            raise Mixes("it takes a diagonal")
    over = [each for letter, each in sizes.items() if letter not in right]
    if has_rows(*over):
        raise Mixes("rows are summed")
    return values(op.ins, [sizes[letter] for letter in right], pads | lists_in(over))


# Convolutions are missing: whether 0 of their padding meets an infinite weight, which makes it NaN,
# depends on the kernel, and TensorFlow chooses it by the number of rows.
@rule("MaxPool", "AvgPool")
def pool(op: Op) -> Fact:
    fact = op.ins[0].plain()
    if op.attr("data_format") != b"NHWC" or len(fact.axes) != 4:
        raise Mixes("channels are the second dimension")
    if has_rows(*fact.axes[1:]):
        raise Mixes("neighbouring rows are combined")
    pads = lists_in(fact.axes[1:])
    inner = [op.declared(0, number) for number in (1, 2, 3)]
    inner = [width(pads, str(each[0])) if pads and names([each]) else each for each in inner]
    return values(op.ins, (fact.axes[0], *inner), pads)
