"""Bounds and finiteness of an op's outputs, and the values that pad shorter lists."""

import math
from dataclasses import replace
from typing import Any

from colcast.export.rows._facts import Axes, Fact, Kind, longest
from colcast.export.rows._op import TABLE, Op


def fills_of(op: Op, facts: Any, axes: Axes) -> tuple[Any, ...]:
    """The padding after the ends of lists along each dimension of an op's output."""
    fills = [
        _fill(op, facts, [_fill_of(fact, len(axes) - number) for fact in facts])
        if longest([each])
        else None
        for number, each in enumerate(axes)
    ]
    return tuple(fills) if any(fill is not None for fill in fills) else ()


def _fill_of(fact: Fact, from_behind: int) -> Any:
    """The padding of an input along a dimension, counted from the last."""
    if fact.uniform is not None:
        return fact.uniform
    axes = fact.axes or ()
    if from_behind > len(axes) or not axes[-from_behind]:
        return None  # the input is repeated along this dimension
    return fact.fill(len(axes) - from_behind)


def behind(axes: Axes, fill: Any) -> tuple[Any, ...]:
    """The same padding value on every list axis."""
    return tuple(fill if longest([each]) else None for each in axes)


def _fill(op: Op, facts: Any, fills: Any) -> Any:
    """The padding value of an op's output, given the padding values of its inputs.

    None means an unknown value.
    """
    finite = all(map(is_finite, facts, fills))
    if op.type in ("Mul", "LogicalAnd") and finite and any(is_equal(fill, 0) for fill in fills):
        return 0.0 if op.type == "Mul" else False
    if op.type == "SelectV2":
        return None if fills[0] is None else fills[1] if fills[0] else fills[2]
    if None in fills:
        return None
    return op.compute(fills)


def is_finite(fact: Fact, fill: Any) -> bool:
    """Whether padding is finite: `fill`, or if that is unknown, all entries of the tensor."""
    if fill is None:
        return not fact.may_break
    return not is_number(fill) or math.isfinite(fill)


def is_equal(fill: Any, number: float) -> bool:
    return is_number(fill) and bool(fill == number)


def is_number(fill: Any) -> bool:
    return fill is not None and fill is not TABLE and not isinstance(fill, bytes | str)


_THE_SAME = {
    "BroadcastTo", "EnsureShape", "ExpandDims", "Gather", "GatherV2", "Identity", "Reshape",
    "Snapshot", "Squeeze", "StopGradient", "StridedSlice", "Tile", "Transpose",
}  # fmt: skip
"""Ops that output only entries of their first input."""
_NOT_NEGATIVE = {
    "Abs", "Exp", "Range", "Relu", "Relu6", "Rsqrt", "Sigmoid", "Softmax", "Softplus", "Sqrt",
    "Square", "SquaredDifference",
}  # fmt: skip
_FINITE = {
    "ArgMax", "ArgMin", "Bucketize", "Equal", "Greater", "GreaterEqual", "IsFinite", "IsInf",
    "IsNan", "Less", "LessEqual", "LogicalAnd", "LogicalNot", "LogicalOr", "NotEqual", "OnesLike",
    "Where", "ZerosLike",
}  # fmt: skip
"""Ops whose outputs are finite and at least 0 for any input."""
_ABOVE = {
    "Acosh": 1.0, "Digamma": 0.0, "Inv": 0.0, "Lgamma": 0.0, "Log": 0.0, "Log1p": -1.0,
    "Reciprocal": 0.0, "Rsqrt": 0.0,
}  # fmt: skip
"""Ops whose outputs are finite for finite inputs above this number."""
_DIVISIONS = {"Div", "FloorDiv", "FloorMod", "Mod", "RealDiv", "TruncateDiv", "TruncateMod"}
_SOMEWHERE = {
    "Acos", "Asin", "Atanh", "Bitcast", "Cosh", "DecodeRaw", "Erfinv", "Exp", "Expm1", "Ndtri",
    "Sinh", "Xdivy", "Xlog1py", "Xlogy",
}  # fmt: skip
"""Ops whose outputs are NaN or infinite for some finite inputs."""


def with_numbers(op: Op, fact: Fact) -> Fact:
    """Sets `least` and `may_break` in the fact of an op's output."""
    given = [fact, *op.inputs]
    breaks = any(each.may_break for each in given) or _may_break(op)
    return replace(fact, least=_least(op), may_break=breaks and op.type not in _FINITE)


def _least(op: Op) -> float | None:
    """A lower bound of an op's output; None if unknown."""
    least = [given.least for given in op.inputs]
    if op.type == "Maximum":
        return max((each for each in least if each is not None), default=None)
    if op.type in _NOT_NEGATIVE or op.type in _FINITE:
        return 0.0
    if op.type in _THE_SAME:
        return least[0]
    if op.type in ("Select", "SelectV2"):
        del least[0]  # the condition is not output
    elif op.type in ("Mean", "Sum", "Cast"):
        del least[1:]
    known = [each for each in least if each is not None]
    if len(known) < len(least):
        return None
    return _of_known(op.type, known)


def _of_known(type_: str, least: list[float]) -> float | None:
    if type_ in ("Add", "AddV2", "AddN"):
        return sum(least)
    if type_ in ("Minimum", "Pack", "Select", "SelectV2"):
        return min(least)
    if type_ == "Cast":
        return math.floor(least[0])
    positive = min(least, default=-1.0) >= 0
    if type_ == "Mul" and positive:
        return math.prod(least)
    return 0.0 if type_ in ("Mean", "Sum", "RealDiv", "DivNoNan") and positive else None


def _may_break(op: Op) -> bool:
    """Whether an op may output NaN or infinity for the numbers that it reads."""
    if op.type in _ABOVE:
        least = op.inputs[0].least
        return least is None or least <= _ABOVE[op.type]
    if op.type == "Sqrt":
        least = op.inputs[0].least
        return least is None or least < 0
    if op.type in _DIVISIONS:
        by = op.inputs[1]
        is_weight = by.kind is Kind.FIXED and not longest(by.axes or ())
        return not is_weight and (by.least is None or by.least <= 0)
    if op.type == "Pow":
        return not _is_whole_power(op.inputs[1])
    if op.type in ("Softmax", "LogSoftmax"):
        return any(is_number(fill) and math.isinf(fill) for fill in op.inputs[0].fills)
    return op.type in _SOMEWHERE


def _is_whole_power(exponent: Fact) -> bool:
    power = exponent.uniform
    return is_number(power) and power >= 0 and power == int(power)
