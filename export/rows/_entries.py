"""Ops that compute each entry from entries of its row: at its position, or over dimensions."""

from collections.abc import Iterable
from dataclasses import replace

import tensorflow as tf
from colcast.export.rows._facts import (
    Axis,
    Fact,
    R,
    dim,
    flat,
    has_rows,
    mixed,
    names,
    values,
)
from colcast.export.rows._op import Op, apart, broadcast, equal, fixed, require, rule

# Atan2 is missing: its vectorised kernel answers infinities otherwise than its scalar one. So are
# convolutions: whether 0 of their padding meets an infinite weight, which makes it NaN, depends on
# the kernel, and TensorFlow chooses it by the number of rows. Pow's kernels differ at powers of
# infinity and NaN, and others in the sign of a NaN, which AsString writes.
ELEMENTS = [
    "Abs", "Acos", "Acosh", "Add", "AddN", "AddV2", "ApproximateEqual", "AsString", "Asin", "Asinh",
    "Atan", "Atanh", "BesselI0e", "BesselI1e", "BiasAdd", "BiasAddV1", "BitwiseAnd", "BitwiseOr",
    "BitwiseXor", "Bucketize", "Ceil", "CheckNumerics", "CheckNumericsV2", "ClipByValue", "Cos",
    "Cosh", "DecodeBase64", "Digamma", "Div", "DivNoNan", "Elu", "EncodeBase64", "Equal", "Erf",
    "Erfc", "Erfinv", "Exp", "Expm1", "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars",
    "FakeQuantWithMinMaxVarsPerChannel", "Floor", "FloorDiv", "FloorMod", "Greater", "GreaterEqual",
    "Inv", "Invert", "IsFinite", "IsInf", "IsNan", "LeakyRelu", "LeftShift", "Less", "LessEqual",
    "Lgamma", "Log", "Log1p", "LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mod",
    "Mul", "MulNoNan", "Ndtri", "Neg", "NotEqual", "Pow", "PreventGradient", "RealDiv",
    "Reciprocal", "RegexFullMatch", "RegexReplace", "Relu", "Relu6", "RightShift", "Rint", "Round",
    "Rsqrt", "SelectV2", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt",
    "Square", "SquaredDifference", "StaticRegexFullMatch", "StaticRegexReplace", "StringJoin",
    "StringLength", "StringLower", "StringStrip", "StringToHashBucket", "StringToHashBucketFast",
    "StringToHashBucketStrong", "StringToNumber", "StringUpper", "Sub", "Substr", "Tan", "Tanh",
    "TruncateDiv", "TruncateMod", "UnicodeScript", "UnicodeTranscode", "Xdivy", "Xlog1py", "Xlogy",
]  # fmt: skip


@rule(*ELEMENTS)
def elementwise(op: Op) -> Fact:
    if op.type == "BiasAdd":
        _channels_last(op)
    if op.type in ("AsString", "Pow") and op.operation.inputs[0].dtype.is_floating:
        require(op.type == "Pow" and op.value(1) is not None, "NaN has several results")
    return _sizes(op) or _of_a_list(op) or _broadcast(op, op.ins)


def _broadcast(op: Op, ins: Iterable[Fact]) -> Fact:
    facts, pads = [fact.plain() for fact in ins], frozenset[str]()
    axes = facts[0].axes
    for fact in facts[1:]:
        axes, more = broadcast(op, axes, fact.axes)
        pads |= more
    return values(facts, axes, pads)


def _channels_last(op: Op) -> None:
    require(op.attr("data_format") == b"NHWC", "channels are the second dimension")


def _sizes(op: Op) -> Fact | None:
    """Sizes multiplied, divided by themselves, or at least 0; row splits less 1 are rows."""
    ops = ("FloorDiv", "Maximum", "Mul", "Sub")
    if op.type not in ops or all(fact.kind != "size" for fact in op.ins):
        return None
    known = (fact.kind == "size" or op.value(i) is not None for i, fact in enumerate(op.ins))
    if any(len(fact.axes) > 1 for fact in op.ins) or not all(known):
        return None
    one, other = op.entries(0), op.entries(1)
    if op.type == "Mul" and None not in (*one, *other):
        longer = max(len(one), len(other))
        pairs = zip(*(x * (longer if len(x) == 1 else 1) for x in (one, other)), strict=True)
        axes = () if all(not fact.axes for fact in op.ins) else (dim(longer),)
        return Fact("size", axes, sizes=tuple(dim(*flat(pair)) for pair in pairs))
    if op.type == "FloorDiv" and one == other and None not in one:
        return replace(op.ins[0], sizes=((),) * len(one))
    if op.type == "Maximum" and [(0,)] in (one, other):
        return op.ins[one == [(0,)]]
    of_splits = len(found := flat(one)) == 1 and str(found[0]).startswith("splits:")
    return replace(op.ins[0], sizes=(R,)) if of_splits and (op.type, other) == _ONE_LESS else None


_ONE_LESS = ("Sub", [()])


def clamped(op: Op) -> Fact | None:
    """min(size, max(size, any number)) is that size; None for other ops."""
    scalar = op.operation.outputs[0].shape.rank == 0
    for index in (0, 1) if op.type in ("Maximum", "Minimum") and scalar else ():
        one, other = op.ins[index], op.ins[1 - index]
        if one.axes or other.kind != "mixed" or (one.kind != "size" and op.value(index) is None):
            continue
        sizes = tuple(op.entries(index))
        if op.type == "Maximum":
            return replace(other, sizes=sizes)
        if other.sizes == sizes:
            return Fact("size", sizes=sizes)
    return None


def _of_a_list(op: Op) -> Fact | None:
    """Where lists have entries: positions less than lengths. Lengths: the ends less the starts."""
    if op.type not in ("Less", "Sub"):
        return None
    one, other = op.ins
    kind, name = other.role
    if op.type == "Sub" and (one.of, other.of) == (f"ends:{name}", f"starts:{name}"):
        return Fact("rows", (R,), one.pads | other.pads, of=f"lengths:{name}")
    longest: Axis = (f"longest:{name}",)
    fit = one.axes == (longest,) and other.axes == (R, ())
    if op.type == "Less" and fit and (one.of, kind) == ("positions:", "lengths"):
        return Fact("rows", (R, longest), other.pads, of=f"mask:{name}")
    return None


@rule("Identity", "StopGradient", "Snapshot", "EnsureShape", "PlaceholderWithDefault", "DeepCopy")
@rule("IdentityN")
def forward(op: Op) -> list[Fact]:
    return list(op.ins[: op.outputs])


_WHOLE = (tf.int32, tf.int64)


@rule("Cast")
def cast(op: Op) -> Fact:
    """Numbers that do not fit into a small integer are cast otherwise in vector registers."""
    source, target = (
        each[0].dtype.base_dtype for each in (op.operation.inputs, op.operation.outputs)
    )
    if source in _WHOLE and target in _WHOLE:
        return op.ins[0]
    small = source.is_floating and target.is_integer and target not in _WHOLE
    require(not small, f"numbers out of the range of {target.name} depend on their position")
    return values(op.ins, op.ins[0].axes)


@rule("LookupTableFindV2", "LookupTableFind")
def look_up(op: Op) -> Fact:
    fixed((op.ins[0], op.ins[2]))
    return values(op.ins[1:], (*op.ins[1].axes, *op.ins[2].axes))


@rule("OneHot")
def one_hot(op: Op) -> Fact:
    require(not apart(op.size(1)), "the depth is a size of the run")
    require(not any(fact.axes for fact in op.ins[2:]), "its values are not scalars")
    axes = list(op.ins[0].plain().axes)
    axes.insert(op.axis(0, op.attr("axis"), 1), op.size(1))
    return values([op.ins[0], *op.ins[2:]], axes)


@rule("Select")
def select(op: Op) -> Fact:
    """A vector of conditions chooses whole rows of inputs of a higher rank."""
    condition, *others = (fact.plain() for fact in op.ins)
    missing = len(others[0].axes) - 1
    if len(condition.axes) == 1 and missing > 0:
        condition = replace(condition, axes=(*condition.axes, *[()] * missing))
    return _broadcast(op, [*others, condition])


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(op: Op) -> list[Fact]:
    require(not op.attr("is_training"), "it normalises with statistics over rows")
    _channels_last(op)
    rest = [mixed(f"a statistic of {op.name}")] * (op.outputs - 1)
    return [values(op.ins[:1], op.ins[0].axes, fixed(op.ins[1:])), *rest]


@rule("ZerosLike", "OnesLike")
def alike(op: Op) -> Fact:
    (fact,) = op.ins
    of_rows = has_rows(*fact.axes)
    kind, same = "rows" if of_rows else "fixed", of_rows and not fact.pads
    return Fact(kind, fact.axes, fact.pads, same=same)


def reduced(fact: Fact, over: Iterable[Axis], axes: Iterable[Axis]) -> Fact:
    """Values computed from all entries of some dimensions of their own row."""
    return values([fact], axes, apart(*over))


@rule("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm")
def reduce(op: Op) -> Fact:
    fact = op.ins[0]
    gone = {op.axis(0, number) for number in op.numbers(1)}
    keep = op.attr("keep_dims")
    role, name = fact.role
    if fact.kind == "size" and op.type == "Prod" and None not in fact.sizes and gone:
        return Fact("size", ((),) if keep else (), sizes=(dim(*flat(fact.sizes)),))
    if (op.type, role, fact.axes) == ("Max", "lengths", (R,)) and gone:
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


@rule("Softmax", "LogSoftmax", "Cumsum", "Cumprod")
def along(op: Op) -> Fact:
    axes = op.ins[0].axes
    number = op.axis(0, op.numbers(1)[0]) if len(op.ins) > 1 else len(axes) - 1
    return reduced(op.ins[0], [axes[number]], axes)


@rule("TopKV2")
def top_k(op: Op) -> list[Fact]:
    axes, size = op.ins[0].axes, op.size(1)
    apart(size)
    return [reduced(op.ins[0], axes[-1:], (*axes[:-1], size))] * 2


@rule("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def product(op: Op) -> Fact:
    turned = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
    a, b = (fact.plain().axes for fact in op.ins)
    a = (*a[:-2], a[-1], a[-2]) if op.attr(turned[0]) else a
    b = (*b[:-2], b[-1], b[-2]) if op.attr(turned[1]) else b
    batch, pads = broadcast(op, a[:-2], b[:-2])
    return values(op.ins, (*batch, a[-2], b[-1]), pads | apart(a[-1], b[-2]))


@rule("Einsum")
def einsum(op: Op) -> Fact:
    left, arrow, right = op.attr("equation").decode().partition("->")
    require(arrow and "." not in left, "the equation has an ellipsis or no output")
    sizes: dict[str, Axis] = {}
    pads = frozenset[str]()
    for letters, fact in zip(left.split(","), op.ins, strict=True):
        require(len(set(letters)) == len(letters), "it takes a diagonal")
        for letter, each in zip(letters, fact.axes, strict=True):
            sizes[letter], more = equal(sizes.get(letter, each), each)
            pads |= more
    over = [each for letter, each in sizes.items() if letter not in right]
    return values(op.ins, [sizes[letter] for letter in right], pads | apart(*over))
