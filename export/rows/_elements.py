"""Ops that compute each entry from the entries at its position; sizes beside each other."""

from dataclasses import replace

import tensorflow as tf
from colcast.export.rows._facts import (
    Axis,
    Fact,
    Mixes,
    R,
    dim,
    has_rows,
    mixed,
    names,
    values,
)
from colcast.export.rows._op import Op, broadcast, rule

# Atan2 is missing: its vectorised kernel answers infinities otherwise than its scalar one.
ELEMENTS = [
    "Abs", "Acos", "Acosh", "AsString", "Asin", "Asinh", "Atan", "Atanh", "BesselI0e",
    "BesselI1e", "Bucketize", "Ceil", "CheckNumerics", "CheckNumericsV2", "Cos", "Cosh",
    "DecodeBase64", "Digamma", "Elu", "EncodeBase64", "Erf", "Erfc", "Erfinv", "Exp", "Expm1",
    "FakeQuantWithMinMaxArgs", "Floor", "Inv", "Invert", "IsFinite", "IsInf", "IsNan",
    "LeakyRelu", "Lgamma", "Log", "Log1p", "LogicalNot", "Ndtri", "Neg", "PreventGradient",
    "Reciprocal", "RegexFullMatch", "RegexReplace", "Relu", "Relu6", "Rint", "Round", "Rsqrt",
    "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Square",
    "StaticRegexFullMatch", "StaticRegexReplace", "StringLength", "StringLower", "StringStrip",
    "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong", "StringToNumber",
    "StringUpper", "Tan", "Tanh", "UnicodeScript", "UnicodeTranscode", "Add", "AddN", "AddV2",
    "ApproximateEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "ClipByValue", "Div", "DivNoNan",
    "Equal", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel", "FloorDiv",
    "FloorMod", "Greater", "GreaterEqual", "LeftShift", "Less", "LessEqual", "LogicalAnd",
    "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NotEqual", "Pow", "RealDiv",
    "RightShift", "SelectV2", "SquaredDifference", "StringJoin", "Sub", "Substr", "TruncateDiv",
    "TruncateMod", "Xdivy", "Xlog1py", "Xlogy",
]  # fmt: skip


@rule(*ELEMENTS)
def elementwise(op: Op) -> Fact:
    made = arithmetic(op) or _of_a_list(op)
    if made:
        return made
    facts, pads = [fact.plain() for fact in op.ins], frozenset[str]()
    axes = facts[0].axes
    for fact in facts[1:]:
        axes, more = broadcast(op, axes, fact.axes)
        pads |= more
    return values(facts, axes, pads)


def arithmetic(op: Op) -> Fact | None:
    """Sizes multiplied, divided without rest, at least 0; the number of splits less 1."""
    if op.type not in ("FloorDiv", "Maximum", "Mul", "Sub"):
        return None
    if all(fact.kind != "size" for fact in op.ins) or any(len(f.axes) > 1 for f in op.ins):
        return None
    if any(fact.kind != "size" and op.value(i) is None for i, fact in enumerate(op.ins)):
        return None
    a, b = op.entries(0), op.entries(1)
    a, b = (x * (max(len(a), len(b)) if len(x) == 1 else 1) for x in (a, b))
    if len(a) != len(b) or None in a or None in b:
        return None
    made = [_computed(op.type, x or (), y or ()) for x, y in zip(a, b, strict=True)]
    if None in made:
        return None
    axes = () if all(not fact.axes for fact in op.ins) else (dim(len(made)),)
    return Fact("size", axes, sizes=tuple(made))


def _computed(op: str, one: Axis, other: Axis) -> Axis | None:
    if op == "Mul":
        return dim(*one, *other)
    if op == "Maximum":
        return one if other in ((0,), one) else other if one == (0,) else None
    if op == "Sub":
        of_splits = len(one) == 1 and str(one[0]).startswith("splits:")
        return R if of_splits and other == () else None
    rest = list(one)
    for factor in other:
        if factor in rest:
            rest.remove(factor)
            continue
        whole = [n for n in rest if isinstance(n, int)]
        if not isinstance(factor, int) or not factor:
            return None
        whole = [n for n in whole if n % factor == 0]
        if not whole:
            return None
        rest[rest.index(whole[0])] = whole[0] // factor
    return dim(*rest)


def clamped(op: Op) -> Fact | None:
    """min(size, max(size, anything)) is that size; None for other ops."""
    for index in (0, 1) if op.type in ("Maximum", "Minimum") else ():
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
def forward(op: Op) -> Fact:
    return op.ins[0]


@rule("IdentityN")
def forward_all(op: Op) -> list[Fact]:
    return list(op.ins)


_WHOLE = (tf.int32, tf.int64)


@rule("Cast")
def cast(op: Op) -> Fact:
    """Numbers that do not fit into a small integer are cast otherwise in vector registers."""
    source, target = (
        each[0].dtype.base_dtype for each in (op.operation.inputs, op.operation.outputs)
    )
    if source in _WHOLE and target in _WHOLE:
        return op.ins[0]
    if source.is_floating and target.is_integer and target not in _WHOLE:
        raise Mixes(f"numbers out of the range of {target.name} depend on their position")
    return values(op.ins, op.ins[0].axes)


@rule("LookupTableFindV2", "LookupTableFind")
def look_up(op: Op) -> Fact:
    if op.ins[0].kind != "fixed" or op.ins[2].plain().kind != "fixed":
        raise Mixes("rows choose the table")
    return values(op.ins[1:], (*op.ins[1].axes, *op.ins[2].axes))


@rule("OneHot")
def one_hot(op: Op) -> Fact:
    (depth,) = op.entries(1)
    if depth is None or has_rows(depth) or any(name[0] != "?" for name in names([depth])):
        raise Mixes("the depth is a size of the run")
    if any(fact.axes for fact in op.ins[2:]):
        raise Mixes("its values are not scalars")
    axes = list(op.ins[0].plain().axes)
    axes.insert(op.axis(0, op.attr("axis"), 1), depth)
    return values([op.ins[0], *op.ins[2:]], axes)


@rule("Select")
def select(op: Op) -> Fact:
    """A vector of conditions chooses whole rows of inputs of a higher rank."""
    condition, *others = (fact.plain() for fact in op.ins)
    axes, pads = broadcast(op, others[0].axes, others[1].axes)
    if len(condition.axes) == 1 < len(axes):
        condition = replace(condition, axes=(*condition.axes, *[()] * (len(axes) - 1)))
    axes, more = broadcast(op, axes, condition.axes)
    return values([condition, *others], axes, pads | more)


@rule("BiasAdd", "BiasAddV1")
def bias_add(op: Op) -> Fact | list[Fact]:
    if op.type == "BiasAdd" and op.attr("data_format") != b"NHWC":
        raise Mixes("the bias is along the second dimension")
    return elementwise(op)


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(op: Op) -> list[Fact]:
    if op.attr("is_training") or any(fact.plain().kind != "fixed" for fact in op.ins[1:]):
        raise Mixes("it normalises with statistics over rows")
    if op.attr("data_format") != b"NHWC":
        raise Mixes("channels are the second dimension")
    rest = [mixed(f"a statistic of {op.name}")] * (op.outputs - 1)
    more = frozenset[str]().union(*(fact.pads for fact in op.ins[1:]))
    return [values(op.ins[:1], op.ins[0].axes, more), *rest]


@rule("ZerosLike", "OnesLike")
def alike(op: Op) -> Fact:
    (fact,) = op.ins
    of_rows = has_rows(*fact.axes)
    kind, same = "rows" if of_rows else "fixed", of_rows and not fact.pads
    return Fact(kind, fact.axes, fact.pads, same=same)
