"""Bounds of a number in which rows meet: it is at most, or at least, a known size.

For example, `tf.math.bincount` outputs as many counts as its largest value requires, but within the
minimum and maximum length that it was given.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from colcast.export.rows._facts import Axis, Fact, Kind, fixed, mixed

_ONE: Axis = ()
_TRUTHS = ("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual")


def bounded(op: str, inputs: Sequence[Fact], value_of: Callable[[int], Any], refused: Fact) -> Fact:
    """The output of an op in which rows meet: `refused` with bounds, or what these imply."""
    first, refused = inputs[0], mixed(refused.why)
    if op in _TRUTHS:
        return replace(refused, most=_ONE)
    if op in ("Cast", "Identity"):
        return replace(refused, most=first.most, below=first.below, least=first.least)
    if op == "Max" and first.refers is not None:
        return replace(refused, most=first.refers, below=True)
    if op == "Mul" and _ONE in (most := [fact.most for fact in inputs]) and None not in most:
        return replace(refused, most=most[1 - most.index(_ONE)])
    return _beside_a_number(op, inputs, value_of, refused)


def _beside_a_number(
    op: str, inputs: Sequence[Fact], value_of: Callable[[int], Any], refused: Fact
) -> Fact:
    for index in (0, 1) if op in ("Add", "AddV2", "Maximum", "Minimum") else ():
        one, other = inputs[index], inputs[1 - index]
        if one.kind is Kind.MIXED or one.axes != ():
            continue
        if op == "Maximum" and one.sizes is not None and one.sizes == (other.most,):
            return one
        value = value_of(index)
        if value is None or np.asarray(value).dtype.kind != "i":
            continue
        if op == "Maximum":
            return replace(refused, least=float(value))
        if op == "Minimum" and other.least is not None and other.least >= value:
            return fixed((), np.asarray(value))
        if op in ("Add", "AddV2") and other.below and value <= 1:
            return replace(refused, most=other.most)
    return refused
