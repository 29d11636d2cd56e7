"""Ops that compute each entry from entries of its row: at its position, or over dimensions."""

from dataclasses import replace

import tensorflow as tf
from colcast.export.rows._facts import Fact, R, apart, dim, equal, fixed, flat, require, values
from colcast.export.rows._op import Op, rule

# Atan2 is missing: its vectorised kernel answers infinities otherwise than its scalar one. So are
# convolutions: whether 0 of their padding meets an infinite weight, which makes it NaN, depends on
# the kernel, and TensorFlow chooses it by the number of rows. Pow's kernels differ at powers of
# infinity and NaN, and others in the sign of a NaN, which AsString writes.
_ELEMENTS = """\
Abs Acos Acosh Add AddN AddV2 ApproximateEqual AsString Asin Asinh Atan Atanh BesselI0e BesselI1e
BiasAdd BiasAddV1 BitwiseAnd BitwiseOr BitwiseXor Bucketize Ceil CheckNumerics CheckNumericsV2
ClipByValue Cos Cosh DecodeBase64 Digamma Div DivNoNan Elu EncodeBase64 Equal Erf Erfc Erfinv Exp
Expm1 FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel Floor
FloorDiv FloorMod Greater GreaterEqual Inv Invert IsFinite IsInf IsNan LeakyRelu LeftShift Less
LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan Ndtri
Neg NotEqual Pow PreventGradient RealDiv Reciprocal RegexFullMatch RegexReplace Relu Relu6
RightShift Rint Round Rsqrt Select SelectV2 Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square
SquaredDifference StaticRegexFullMatch StaticRegexReplace StringJoin StringLength StringLower
StringStrip StringToHashBucket StringToHashBucketFast StringToHashBucketStrong StringToNumber
StringUpper Sub Substr Tan Tanh TruncateDiv TruncateMod UnicodeScript UnicodeTranscode Xdivy Xlog1py
Xlogy
"""


@rule(*_ELEMENTS.split())
def elementwise(op: Op) -> Fact:
    shapes = [fact.axes for fact in op.ins]
    if op.type == "BiasAdd":
        require(op.attr("data_format") == b"NHWC", "channels are the second dimension")
    if op.type == "Select" and len(shapes[0]) == 1:  # a vector that chooses whole rows
        shapes[0] += ((),) * (len(shapes[1]) - 1)
    if op.type in ("AsString", "Pow") and op.operation.inputs[0].dtype.is_floating:
        require(op.type == "Pow" and op.value(1) is not None, "NaN has several results")
    return _sizes(op) or _of_a_list(op) or values(op.ins, *op.broadcast(shapes))


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
        many = max(len(one), len(other))
        pairs = zip(*(each * (many // len(each)) for each in (one, other)), strict=True)
        axes = (dim(many),) if any(fact.axes for fact in op.ins) else ()
        return Fact("size", axes, sizes=tuple(dim(*flat(pair)) for pair in pairs))
    if op.type == "FloorDiv" and one == other and None not in one:
        return replace(op.ins[0], sizes=((),) * len(one))
    if op.type == "Maximum" and [(0,)] in (one, other):
        return op.ins[one == [(0,)]]
    of_splits = [str(factor)[:7] for factor in flat(one)] == ["splits:"]
    return replace(op.ins[0], sizes=(R,)) if of_splits and other == [()] else None


def clamped(op: Op) -> Fact | None:
    """min(size, max(size, any number)) is that size; None for other ops."""
    if op.type not in ("Maximum", "Minimum") or op.operation.outputs[0].shape.rank != 0:
        return None
    number, bound = sorted(op.ins, key=lambda fact: fact.kind != "mixed")
    index = op.ins.index(bound)
    if bound.kind != "size" and op.value(index) is None:
        return None
    sizes = tuple(op.entries(index))
    if op.type == "Maximum":
        return replace(number, sizes=sizes)
    return Fact("size", sizes=sizes) if number.sizes == sizes else None


def _of_a_list(op: Op) -> Fact | None:
    """Where lists have entries: positions less than lengths. Lengths: the ends less the starts."""
    if op.type not in ("Less", "Sub"):
        return None
    (role, _), (of, name) = (fact.role for fact in op.ins)
    pads, longest = op.ins[0].pads | op.ins[1].pads, (f"longest:{name}",)
    if (op.type, role, of, op.ins[0].role[1]) == ("Sub", "ends", "starts", name):
        return Fact("rows", (R,), pads, of=f"lengths:{name}")
    fit = [fact.axes for fact in op.ins] == [(longest,), (R, ())]
    if fit and (op.type, role, of) == ("Less", "positions", "lengths"):
        return Fact("rows", (R, longest), pads, of=f"mask:{name}")
    return None


@rule("Identity", "IdentityN", "StopGradient", "Snapshot", "EnsureShape", "PlaceholderWithDefault")
def forward(op: Op) -> list[Fact]:
    return list(op.ins)


@rule("Cast")
def cast(op: Op) -> Fact:
    """Numbers that do not fit into a small integer are cast otherwise in vector registers."""
    source, target, whole = op.attr("SrcT"), op.attr("DstT"), (tf.int32, tf.int64)
    if source in whole and target in whole:
        return op.ins[0]
    small = source.is_floating and target.is_integer and target not in whole
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


@rule("ZerosLike", "OnesLike")
def alike(op: Op) -> Fact:
    return values([], op.ins[0].axes, op.ins[0].pads)


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
    return values([fact], left, apart(*(fact.axes[number] for number in gone)))


@rule("ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Cumsum", "Cumprod")
def along(op: Op) -> Fact:
    axes = list(op.ins[0].axes)
    number = op.axis(0, op.numbers(1)[0] if len(op.ins) > 1 else -1)
    over = axes.pop(number) if op.type.startswith("Arg") else axes[number]
    return values(op.ins[:1], axes, apart(over))


@rule("TopKV2")
def top_k(op: Op) -> list[Fact]:
    axes, size = op.ins[0].axes, op.size(1)
    return [values(op.ins[:1], (*axes[:-1], size), apart(axes[-1], size))] * 2


@rule("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def product(op: Op) -> Fact:
    turned = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
    a, b = (fact.plain().axes for fact in op.ins)
    a = (*a[:-2], a[-1], a[-2]) if op.attr(turned[0]) else a
    b = (*b[:-2], b[-1], b[-2]) if op.attr(turned[1]) else b
    batch, pads = op.broadcast([a[:-2], b[:-2]])
    return values(op.ins, (*batch, a[-2], b[-1]), pads | apart(a[-1], b[-2]))


@rule("Einsum")
def einsum(op: Op) -> Fact:
    left, arrow, right = op.attr("equation").decode().partition("->")
    require(arrow and "." not in left, "the equation has an ellipsis or no output")
    sizes, pads = dict[str, tuple[int | str, ...]](), frozenset[str]()
    for letters, fact in zip(left.split(","), op.ins, strict=True):
        require(len(set(letters)) == len(letters), "it takes a diagonal")
        for letter, each in zip(letters, fact.axes, strict=True):
            sizes[letter], more = equal(sizes.get(letter, each), each)
            pads |= more
    over = [each for letter, each in sizes.items() if letter not in right]
    return values(op.ins, [sizes[letter] for letter in right], pads | apart(*over))
