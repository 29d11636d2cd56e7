"""Arithmetic and comparison of the run's sizes."""

from typing import Any

import numpy as np
from colcast.export.rows._facts import Fact, Kind, axis, sizes
from colcast.export.rows._op import Op


def of_sizes(op: Op) -> Fact | None:
    """Products and unchanged sizes; None for other arithmetic."""
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
    """The size that two dimensions or numbers make; None if unknown."""
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
    """A size divided by another, if that is one of its factors."""
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
