"""The range of a tensor's numbers: their lower bound, and whether they are finite.

It matters because multiplying the padding of a list by zero does not remove a NaN or infinity.
"""

import math
from dataclasses import replace

from colcast.export.rows._facts import Fact, Kind
from colcast.export.rows._fills import is_number
from colcast.export.rows._op import Op

_THE_SAME = {
    "BroadcastTo", "EnsureShape", "ExpandDims", "Gather", "GatherV2", "Identity", "Reshape",
    "Snapshot", "Squeeze", "StopGradient", "StridedSlice", "Tile", "Transpose",
}  # fmt: skip
"""Ops whose entries are a selection of their first input's."""
_NOT_NEGATIVE = {
    "Abs", "Exp", "Relu", "Relu6", "Rsqrt", "Sigmoid", "Softmax", "Softplus", "Sqrt", "Square",
    "SquaredDifference",
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
    "Acos", "Asin", "Atanh", "Cosh", "Erfinv", "Exp", "Expm1", "Ndtri", "Sinh", "Xdivy", "Xlog1py",
    "Xlogy",
}  # fmt: skip
"""Ops whose outputs are NaN or infinite for some finite inputs."""


def with_numbers(op: Op, fact: Fact) -> Fact:
    """Adds the range of its numbers to the fact of an op's output."""
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
        del least[0]  # the condition
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
        return by.kind is not Kind.FIXED and (by.least is None or by.least <= 0)
    if op.type == "Pow":
        return not _is_whole_power(op.inputs[1])
    if op.type in ("Softmax", "LogSoftmax"):
        return any(is_number(fill) and math.isinf(fill) for fill in op.inputs[0].fills)
    return op.type in _SOMEWHERE


def _is_whole_power(exponent: Fact) -> bool:
    power = exponent.uniform
    return is_number(power) and power >= 0 and power == int(power)
