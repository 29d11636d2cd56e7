"""The padding after the ends of lists of different lengths."""

import math
from typing import Any

from colcast.export.rows._facts import LOW, Axes, Fact, longest
from colcast.export.rows._op import TABLE, Op

_NO_NUMBER = -1e8  # a score this low gets no weight in a softmax


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
        return None  # the input is repeated along it
    return fact.fill(len(axes) - from_behind)


def behind(axes: Axes, fill: Any) -> tuple[Any, ...]:
    """The same padding value on every list axis."""
    return tuple(fill if longest([each]) else None for each in axes)


def _fill(op: Op, facts: Any, fills: Any) -> Any:
    """An op's result for paddings, each None if it may be anything."""
    finite = all(map(is_finite, facts, fills))
    if op.type in ("Mul", "LogicalAnd") and finite and any(is_equal(fill, 0) for fill in fills):
        return 0.0 if op.type == "Mul" else False
    if op.type in ("AddV2", "Add") and finite and any(map(is_low, fills)):
        return LOW
    if op.type == "SelectV2":
        return None if fills[0] is None else fills[1] if fills[0] else fills[2]
    if any(fill is None or fill is LOW for fill in fills):
        return None
    return op.compute(fills)


def is_finite(fact: Fact, fill: Any) -> bool:
    """Whether the padding of lists, `fill` if it is known, is a finite number."""
    if fill is None:
        return not fact.may_break
    return fill is LOW or not is_number(fill) or math.isfinite(fill)


def is_low(fill: Any) -> bool:
    """Whether a softmax gives a number no weight beside one that is not as low."""
    return fill is LOW or (is_number(fill) and bool(fill <= _NO_NUMBER))


def is_equal(fill: Any, number: float) -> bool:
    """Whether a padding is known to be that number."""
    return is_number(fill) and bool(fill == number)


def is_number(fill: Any) -> bool:
    """Whether a padding is known to be a number."""
    return fill is not None and fill not in (TABLE, LOW) and not isinstance(fill, bytes | str)
