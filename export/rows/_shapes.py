"""Shapes, and ops that give the same entries another shape."""

from collections.abc import Sequence
from dataclasses import replace

from colcast.export.rows._facts import (
    Axes,
    Axis,
    Fact,
    Factor,
    Mixes,
    checked,
    dim,
    flat,
    has_rows,
    is_open,
    lists_in,
    names,
)
from colcast.export.rows._op import Op, rule, within


@rule("Shape", "ShapeN")
def shape(op: Op) -> list[Fact]:
    return [Fact("size", (dim(len(fact.axes)),), sizes=fact.axes) for fact in op.ins]


@rule("Size")
def size(op: Op) -> Fact:
    return Fact("size", sizes=(dim(*flat(op.ins[0].axes)),))


@rule("Rank")
def rank(op: Op) -> Fact:
    return Fact("fixed")


@rule("BroadcastArgs")
def broadcast_args(op: Op) -> Fact:
    one, other = op.entries(0), op.entries(1)
    missing = len(one) - len(other)
    one, other = [()] * -missing + one, [()] * missing + other
    made = []
    for a, b in zip(one, other, strict=True):
        if a != b and a and b:
            raise Mixes("sizes do not fit together")
        made.append(a or b)
    return Fact("size", (dim(len(made)),), sizes=tuple(made))


@rule("Reshape")
def reshape(op: Op) -> Fact:
    fact, wanted = op.ins[0], op.entries(1)
    if fact.kind == "size" and len(wanted) < 2:
        return replace(fact, axes=(dim(len(fact.sizes)),) if wanted else ())
    if fact.kind in ("indices", "size", "splits"):
        raise Mixes("positions or sizes are reshaped")
    made = regrouped(flat(fact.axes), wanted)
    return checked(replace(fact, axes=made, pads=fact.pads | within(made)))


def regrouped(factors: Sequence[Factor], wanted: Sequence[Axis | None]) -> Axes:
    """Groups the factors of a tensor into the wanted dimensions; None is what remains.

    Raises:
        Mixes: the order of the factors does not show that each entry keeps its row.
    """
    if list(wanted).count(None) > 1:
        raise Mixes("several sizes are unknown")
    factors = list(dim(*factors))
    if None not in wanted:
        left, rest = _taken(_opened(factors, wanted), wanted)
        if dim(*rest):
            raise Mixes("the rows of entries are unknown")
        return tuple(left)
    at = list(wanted).index(None)
    front, rest = _taken(factors, wanted[:at])
    behind, rest = _taken(rest[::-1], [each[::-1] for each in wanted[:at:-1] if each is not None])
    return (*front, dim(*rest[::-1]), *(each[::-1] for each in reversed(behind)))


def _opened(factors: list[Factor], wanted: Sequence[Axis | None]) -> list[Factor]:
    """Gives the dimensions after the rows the wanted sizes, which are equal in every run."""
    rows = [number for number, factor in enumerate(factors) if has_rows((factor,))]
    before = factors[: rows[0] + 1] if rows else []
    others = dim(*flat(wanted))
    kept = factors[len(before) :]
    unknown = [factor for factor in kept if is_open((factor,)) and factor not in others]
    if unknown and before and list(others[: len(before)]) == before:
        after = others[len(before) :]
        if lists_in([tuple(kept)]) == lists_in([after]) and not has_rows(after):
            return [*before, *after]
    return factors


def _taken(
    factors: Sequence[Factor], wanted: Sequence[Axis | None]
) -> tuple[list[Axis], list[Factor]]:
    """The first factors, grouped as wanted, and the rest."""
    groups, rest = [], list(factors)
    for each in wanted:
        left, group = list(each or ()), list[Factor]()
        while left:
            if not rest:
                raise Mixes("the rows of entries are unknown")
            factor = rest.pop(0)
            number = next((one for one in left if isinstance(one, int)), 0)
            if factor in left:
                left.remove(factor)
                group.append(factor)
            elif not isinstance(factor, int) or not number or not factor:
                raise Mixes("rows trade places with another dimension")
            elif number % factor == 0:
                left[left.index(number)] = number // factor
                group.append(factor)
            elif factor % number == 0:
                left.remove(number)
                group.append(number)
                rest.insert(0, factor // number)
            else:
                raise Mixes("rows trade places with another dimension")
        groups.append(dim(*group))
    return groups, rest


@rule("ExpandDims")
def expand_dims(op: Op) -> Fact:
    fact, (number,) = op.ins[0], op.numbers(1)
    if fact.kind == "size" and not fact.axes:
        return replace(fact, axes=((),))
    if fact.kind in ("indices", "size", "splits"):
        raise Mixes("positions or sizes are reshaped")
    number = op.axis(0, number, 1)
    return replace(fact, axes=(*fact.axes[:number], (), *fact.axes[number:]))


@rule("Squeeze")
def squeeze(op: Op) -> Fact:
    """Without dimensions to drop, it drops all of size 1, which may be rows, lists or unknown."""
    fact = op.ins[0]
    gone = {op.axis(0, number) for number in op.attr("squeeze_dims")}
    if fact.kind == "size" and len(fact.sizes) == 1:
        return replace(fact, axes=())
    if fact.kind in ("indices", "size", "splits"):
        raise Mixes("positions or sizes are reshaped")
    if not gone and names(fact.axes):
        raise Mixes("which dimensions it drops depends on the run: it has no `axis`")
    gone = gone or {number for number, each in enumerate(fact.axes) if not each}
    if any(fact.axes[number] and not is_open(fact.axes[number]) for number in gone):
        raise Mixes("a dimension that may be larger than 1 is dropped")
    left = tuple(each for number, each in enumerate(fact.axes) if number not in gone)
    return replace(fact, axes=left)


@rule("Transpose")
def transpose(op: Op) -> Fact:
    fact = op.ins[0]
    axes = tuple(fact.axes[op.axis(0, number)] for number in op.numbers(1))
    return replace(fact, axes=axes) if fact.kind == "indices" else fact.moved(axes)
