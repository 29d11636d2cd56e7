"""Rules for ops that compute each entry from the inputs' entries at the same position."""

from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.rows._facts import (
    Axes,
    Fact,
    Kind,
    axis,
    broadcast,
    fixed,
    labels,
    longest,
    sizes,
)
from colcast.export.rows._numbers import behind, fills_of, is_equal, is_number
from colcast.export.rows._op import TABLE, Mixes, Op, as_value, rule, together

_UNARY = {
    "Abs", "Acos", "Acosh", "AsString", "Asin", "Asinh", "Atan", "Atanh", "BesselI0e", "BesselI1e",
    "Bucketize", "Ceil", "CheckNumerics", "CheckNumericsV2", "Cos", "Cosh", "DecodeBase64",
    "Digamma", "Elu", "EncodeBase64", "Erf", "Erfc", "Erfinv", "Exp", "Expm1",
    "FakeQuantWithMinMaxArgs", "Floor", "Inv", "Invert",
    "IsFinite", "IsInf", "IsNan", "LeakyRelu", "Lgamma", "Log", "Log1p", "LogicalNot", "Ndtri",
    "Neg", "PreventGradient", "Reciprocal", "RegexFullMatch", "RegexReplace", "Relu", "Relu6",
    "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign",
    "Sqrt", "Square", "StaticRegexFullMatch", "StaticRegexReplace", "StringLength", "StringLower",
    "StringStrip", "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong",
    "StringToNumber", "StringUpper", "Tan", "Tanh", "UnicodeScript", "UnicodeTranscode",
}  # fmt: skip
_NARY = {
    "Add", "AddN", "AddV2", "ApproximateEqual", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "ClipByValue", "Div", "DivNoNan", "Equal", "FakeQuantWithMinMaxVars",
    "FakeQuantWithMinMaxVarsPerChannel", "FloorDiv", "FloorMod", "Greater", "GreaterEqual",
    "LeftShift", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "Maximum", "Minimum",
    "Mod", "Mul", "MulNoNan", "NotEqual", "Pow", "RealDiv", "RightShift", "SelectV2",
    "SquaredDifference", "StringJoin", "Sub", "Substr", "TruncateDiv", "TruncateMod", "Xdivy",
    "Xlog1py", "Xlogy",
}  # fmt: skip
_FORWARD = {"Identity", "StopGradient", "Snapshot", "PlaceholderWithDefault", "DeepCopy"}


@rule(*_FORWARD)
def forward(op: Op) -> Fact:
    return op.inputs[0]


@rule("IdentityN")
def forward_all(op: Op) -> list[Fact]:
    return list(op.inputs)


@rule("EnsureShape")
def ensure_shape(op: Op) -> Fact:
    return op.inputs[0]


_OF_SIZES = (tf.int32, tf.int64)
"""The types whose casts keep lengths and sizes as they are."""


@rule("Cast", "Bitcast")
def cast(op: Op) -> Fact:
    fact = op.inputs[0]
    if op.type == "Bitcast":
        before, after = (tf.as_dtype(op.attribute(name).type).size for name in ("T", "type"))
        if before != after:
            raise Mixes("the last dimension changes its size")
        return as_value(fact).changed()
    if tf.as_dtype(op.attribute("DstT").type) not in _OF_SIZES:
        fact = as_value(fact)
        fact = fact if fact.mark and fact.mark[0] == "mask" else replace(fact, mark=None)
    if fact.uniform is None and not fact.fills:
        return fact
    fills = tuple(None if fill is None else op.compute([fill]) for fill in fact.fills)
    uniform = None if fact.uniform is None else op.compute([fact.uniform])
    return replace(fact, fills=fills, uniform=uniform)


@rule(*_UNARY)
def unary(op: Op) -> Fact:
    fact = as_value(op.inputs[0])
    return fact.changed(fills=fills_of(op, [fact], op.axes(0)))


@rule("DecodeRaw")
def decode_raw(op: Op) -> Fact:
    """Decodes each string to numbers; the op fails unless all strings hold equally many."""
    return as_value(op.inputs[0]).changed(axes=(*op.axes(0), (f"size:{op.name}",)))


@rule(*_NARY)
def nary(op: Op) -> Fact:
    return _of_sizes(op) or _of_lists(op) or _times_one(op) or elementwise(op, op.inputs)


@rule("BiasAdd", "BiasAddV1")
def bias_add(op: Op) -> Fact:
    """Adds a vector along the last dimension."""
    if op.type == "BiasAdd" and op.attribute("data_format").s == b"NCHW":
        raise Mixes("the bias is along the second dimension")
    return elementwise(op, op.inputs)


@rule("Select")
def select(op: Op) -> Fact:
    """Like SelectV2, except that a vector of conditions chooses whole rows."""
    condition, *both = op.inputs
    axes = [op.axes(index) for index in range(3)]
    if len(axes[0]) == 1 and len(axes[1]) > 1:
        spread = (*axes[0], *[()] * (len(axes[1]) - 1))
        condition = as_value(condition).changed(axes=spread)
    return elementwise(op, [condition, *both])


@rule("LookupTableFind", "LookupTableFindV2")
def look_up(op: Op) -> Fact:
    """Looks up one entry, or a vector, for each key."""
    keys, default = map(as_value, op.inputs[1:])
    width = default.axes or ()
    fills = (
        () if width else fills_of(op, [Fact(Kind.FIXED, uniform=TABLE), keys, default], op.axes(1))
    )
    return keys.changed(axes=(*(op.axes(1)), *width), fills=fills)


@rule("OneHot")
def one_hot(op: Op) -> Fact:
    """Turns each entry into a vector."""
    keys = as_value(op.inputs[0])
    (depth,) = op.entries(1)
    if depth is None or labels([depth]):
        raise Mixes("the depth depends on the request's sizes")
    number = op.attribute("axis").i
    at = op.axis_of(0, number, more=1)
    on, off = map(as_value, op.inputs[2:])
    fills: list[float | None] = [
        off.uniform
        if (fill := keys.fill(n)) is not None and is_number(fill) and fill < 0 and longest([each])
        else None
        for n, each in enumerate(op.axes(0))
    ]
    fills.insert(at, None)
    axes = list(op.axes(0))
    axes.insert(at, depth)
    known = tuple(fills) if any(fill is not None for fill in fills) else ()
    lengths = keys.lengths | on.lengths | off.lengths
    return replace(keys.changed(axes=tuple(axes), fills=known), lengths=lengths)


@rule("ZerosLike", "OnesLike")
def same_everywhere(op: Op) -> Fact:
    """Makes a tensor of the input's shape, filled with 0 or 1."""
    value = int(op.type == "OnesLike")
    return Fact(Kind.FIXED, op.inputs[0].axes, uniform=value)


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(op: Op) -> list[Fact]:
    """Applies a factor and an offset per channel; in training mode it mixes rows."""
    if op.attribute("is_training").b:
        raise Mixes("it computes statistics over rows")
    if any(fact.kind is not Kind.FIXED for fact in op.inputs[1:]):
        raise Mixes("its statistics depend on rows")
    return [as_value(op.inputs[0]).changed(), *[fixed(None)] * (op.outputs - 1)]


def elementwise(op: Op, inputs: Any) -> Fact:
    """The output of an op that computes each entry from the inputs' entries at that position."""
    facts = [as_value(fact) for fact in inputs]
    axes: Axes = ()
    ties: frozenset[str] = frozenset()
    for fact in facts:
        if fact.axes is None:
            raise Mixes("the rank of an input is unknown")
        met = broadcast(axes, fact.axes)
        if met is None:
            raise Mixes("every row is combined with every other")
        axes, tied = met
        ties |= tied
    kind, lengths = together(facts)
    return Fact(kind, axes, lengths | ties, fills=fills_of(op, facts, axes))


def _of_lists(op: Op) -> Fact | None:
    """The result if the op computes the lengths or a mask of a feature's lists; else None."""
    if len(op.inputs) != 2:
        return None
    marks = [fact.mark or ("", "") for fact in op.inputs]
    if op.type == "Maximum" and marks[0][0] == "length" and _is_zero(op, 1):
        return op.inputs[0]
    lists = marks[0][1]
    if op.type == "Sub" and lists and marks == [("ends", lists), ("starts", lists)]:
        return Fact(Kind.ROWS, ((f"rows:{lists.rpartition('@')[2]}",),), mark=("length", lists))
    first, second = marks[::-1] if op.type == "Greater" else marks
    if op.type not in ("Less", "Greater") or not lists:
        return None
    met = broadcast(op.axes(0), op.axes(1))
    if met is None or (first, second) != (("position", lists), ("length", lists)):
        return None
    return Fact(Kind.ROWS, met[0], fills=behind(met[0], False), mark=("mask", lists))


def _times_one(op: Op) -> Fact | None:
    """The result if the op multiplies positions by ones, which only repeats them; else None."""
    if op.type != "Mul" or all(fact.refers is None for fact in op.inputs):
        return None
    ones, positions = sorted(op.inputs, key=lambda fact: fact.refers is not None)
    met = broadcast(ones.axes or (), positions.axes or ())
    if not is_equal(ones.uniform, 1) or met is None:
        return None
    return replace(positions, axes=met[0], mark=None)


def _is_zero(op: Op, index: int) -> bool:
    value = op.value_of(index) if op.inputs[index].kind is Kind.FIXED else None
    return value is not None and not np.any(value)


def _of_sizes(op: Op) -> Fact | None:
    """The result if the op computes known sizes from sizes; else None."""
    if not any(fact.kind is Kind.SIZES for fact in op.inputs) or len(op.inputs) != 2:
        return None
    if any(fact.kind not in (Kind.SIZES, Kind.FIXED) for fact in op.inputs):
        return None
    if op.type not in ("Mul", "Maximum", "Minimum", "Sub", "FloorDiv"):
        return None
    scalar = all(fact.rank == 0 for fact in op.inputs)
    entries = []
    for index in (0, 1):
        fact = op.inputs[index]
        if fact.kind is Kind.FIXED and op.value_of(index) is None:
            return None
        entries.append(
            list(fact.sizes or ())
            if fact.kind is Kind.SIZES
            else [int(n) for n in np.reshape(op.value_of(index), [-1])]
        )
    count = max(map(len, entries))
    if any(len(each) not in (1, count) for each in entries):
        return None
    pairs = zip(*(each * (count if len(each) == 1 else 1) for each in entries), strict=True)
    made = [_size(op.type, one, other) for one, other in pairs]
    return None if any(each is None for each in made) else sizes(made, scalar)


def _size(type_: str, one: Any, other: Any) -> Any:
    """The size that an op computes from two dimensions or numbers; None if unknown."""
    if type_ == "Mul":
        both = [axis(each) if isinstance(each, int) else each for each in (one, other)]
        return None if None in both else axis(*both[0], *both[1])
    if type_ == "Minimum":
        return one if one == other else None
    if isinstance(one, int) and type_ == "Maximum":
        one, other = other, one
    if one is None or isinstance(one, int):
        return None
    if type_ == "Maximum" and isinstance(other, int) and other <= 0:
        return one
    if type_ == "Sub":
        if other == 0:
            return one
        if other == 1 and len(one) == 1 and str(one[0]).startswith("splits:"):
            return (f"rows:{str(one[0]).rpartition('@')[2]}",)
        return None
    if type_ == "FloorDiv":
        return _quotient(one, axis(other) if isinstance(other, int) else other)
    return None


def _quotient(one: Any, other: Any) -> Any:
    """A size divided by one of its factors; None if `other` is not a factor."""
    if other is None:
        return None
    rest = list(one)
    for factor in other:
        if factor in rest:
            rest.remove(factor)
        elif isinstance(factor, int):
            whole = [f for f in rest if isinstance(f, int) and f % factor == 0]
            if not whole:
                return None
            rest[rest.index(whole[0])] = whole[0] // factor
        else:
            return None
    return axis(*rest)
