"""What is known of a tensor before anything runs: how its values follow the rows of a run.

A dimension is a product of factors, the slowest first: `("rows:candidate", 4)` is four entries of
each candidate, one candidate behind the other. A factor is a number or one of these labels:

    rows:D       the rows of domain D
    longest:F    the longest list of feature F among the rows of the run
    longest+1:F  one more
    elements:S   all elements of lists S, row by row
    distinct:P   the distinct values P of a run, in any order
    splits:S     one more than the rows of lists S: where each begins and ends
    size:X       some size that is the same in every run that rows may share
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Factor = int | str
Axis = tuple[Factor, ...]
"""One dimension; `()` is of size 1."""
Axes = tuple[Axis, ...]


class Kind(enum.Enum):
    """What the values of a tensor depend on."""

    FIXED = "fixed"  # on no row: weights, constants, what a run has once
    SIZES = "sizes"  # on the sizes of the run only: shapes, counts
    ROWS = "rows"  # each entry on the row that it belongs to, and on no other
    SPLITS = "splits"  # on where the lists of each row end in all elements
    MIXED = "mixed"  # on other rows, as far as anybody can tell


@dataclass(frozen=True)
class Fact:
    """What is known of one tensor.

    Attributes:
        kind: what its values depend on.
        axes: its dimensions; None where not even their number is known.
        lengths: features on whose longest list in the run the values depend.
        fills: by dimension, of a `longest` one: what stands behind the end of each list, a number
            or bytes; `LOW` for a number so low that nothing is left of it in a softmax beside
            another one; None: any.
        uniform: what all entries are; None: they differ.
        sizes: of SIZES: what each entry of a vector is, or the one of a scalar; None: some number.
        refers: the entries are positions along this dimension, each within its own row.
        places: the same by column of the last dimension; None for a column of plain values.
        mark: what the tensor is to the lists of a feature: ("length" | "mask" | "position" |
            "ends" | "starts" | "splits", lists).
        why: of MIXED: the node and what it does.
        least: no entry is less; None: not known.
        most: of MIXED: a size that no entry is greater than; None: not known.
        below: whether all entries are even less than that.
        may_break: whether entries may be NaN or infinite where no column's value is.
        value: of FIXED and a few numbers: these.
    """

    kind: Kind
    axes: Axes | None = None
    lengths: frozenset[str] = frozenset()
    fills: tuple[Any, ...] = ()
    uniform: Any = None
    sizes: tuple[Axis | None, ...] | None = None
    refers: Axis | None = None
    places: tuple[Axis | None, ...] | None = None
    mark: tuple[str, str] | None = None
    why: str = ""
    least: float | None = None
    most: Axis | None = None
    below: bool = False
    may_break: bool = False
    value: Any = field(default=None, compare=False)

    @property
    def rank(self) -> int | None:
        """The number of dimensions."""
        return None if self.axes is None else len(self.axes)

    @property
    def plain(self) -> bool:
        """Whether entries are values, no positions of anything."""
        return self.refers is None and self.places is None

    def fill(self, number: int) -> Any:
        """The padding behind the end of lists along a dimension; None: anything."""
        if self.uniform is not None:
            return self.uniform
        return self.fills[number] if self.fills else None

    def changed(self, **changes: Any) -> "Fact":
        """Other values of the same dependence; what its entries stood for is not theirs."""
        own = {"mark": None, "fills": (), "uniform": None, "value": None}
        return replace(self, **{**own, **changes})


class Low(enum.Enum):
    """A number below any score."""

    LOW = "low"


LOW = Low.LOW


def fixed(axes: Axes | None, value: Any = None) -> Fact:
    """A tensor that depends on no row."""
    one = np.reshape(value, [-1])[0] if value is not None and np.size(value) == 1 else None
    return Fact(Kind.FIXED, axes, value=value, uniform=one, least=_least(value))


def _least(value: Any) -> float | None:
    """The least of some numbers; None for other values, or if there are none."""
    numbers = np.asarray(() if value is None else value)
    return float(numbers.min()) if numbers.size and numbers.dtype.kind in "biuf" else None


def mixed(why: str) -> Fact:
    """A tensor in which rows may meet."""
    return Fact(Kind.MIXED, why=why)


def sizes(entries: Iterable[Axis | None], scalar: bool = False) -> Fact:
    """A vector of sizes, or the one of a scalar."""
    entries = tuple(entries)
    return Fact(Kind.SIZES, () if scalar else (axis(len(entries)),), sizes=entries)


def axis(*factors: Factor) -> Axis:
    """A dimension: numbers side by side multiplied, ones left out."""
    made: list[Factor] = []
    for factor in factors:
        last = made[-1] if made else None
        if isinstance(factor, int) and isinstance(last, int):
            made[-1] = last * factor
        elif factor != 1:
            made.append(factor)
    return tuple(made)


def labels(axes: Iterable[Axis | None]) -> list[str]:
    """The labels of some dimensions."""
    return [factor for each in axes if each for factor in each if isinstance(factor, str)]


def is_of_rows(label: str) -> bool:
    """Whether a dimension with this label has entries of different rows."""
    return label.startswith(("rows:", "elements:", "distinct:", "splits:"))


def is_counted(each: Axis) -> bool:
    """Whether a dimension has no labels."""
    return all(isinstance(factor, int) for factor in each)


def has_rows(axes: Iterable[Axis | None]) -> bool:
    """Whether one of some dimensions has entries of different rows."""
    return any(map(is_of_rows, labels(axes)))


def longest(axes: Iterable[Axis | None]) -> frozenset[str]:
    """The features whose longest list is the size of one of some dimensions."""
    found = [label.partition(":") for label in labels(axes)]
    return frozenset(lists for kind, _, lists in found if kind.startswith("longest"))


def same_size(one: Axis, other: Axis) -> bool:
    """Whether two dimensions have the same factors, in whatever order."""
    return sorted(map(str, one)) == sorted(map(str, other))


def broadcast(one: Axes, other: Axes) -> tuple[Axes, frozenset[str]] | None:
    """The dimensions of an op over two tensors; None where their rows would meet.

    Lists of two features in one dimension are equally long, or one of them is one long: which it
    is depends on both, the second result.
    """
    made: list[Axis] = []
    ties: frozenset[str] = frozenset()
    for number in range(1, max(len(one), len(other)) + 1):
        a = one[-number] if number <= len(one) else ()
        b = other[-number] if number <= len(other) else ()
        if a == b or not b:
            made.append(a)
        elif not a:
            made.append(b)
        elif _is_open(b) and has_rows([a]):
            made.append(a)  # of size 1: another one would fit one number of rows only
        elif _is_open(a) and has_rows([b]):
            made.append(b)
        elif are_aligned(a, b):
            made.append(a)
        elif without_open(a) == without_open(b):
            made.append(without_open(a))
        elif has_rows([a]) or has_rows([b]):
            return None
        else:
            ties |= longest([a, b])
            made.append(a)
    return tuple(reversed(made)), ties


def _is_open(each: Axis) -> bool:
    """Whether a dimension is of one size in all runs that is not known."""
    return bool(each) and all(str(factor).startswith("size:") for factor in each)


def has_open(each: Axis) -> bool:
    """Whether the size of a dimension, or of a part of it, is not known and no row's."""
    return any(str(factor).startswith("size:") for factor in each)


def without_open(each: Axis) -> Axis:
    """The same dimension, where sizes that are the same in all runs are 1: it would not fit else.

    Only of a dimension with entries of different rows: a row count that is off shows in a run.
    """
    if not has_rows([each]):
        return each
    return tuple(factor for factor in each if not str(factor).startswith("size:"))


def are_aligned(one: Axis, other: Axis) -> bool:
    """Whether entries of the same position in two dimensions are of the same row.

    Two features' lists that a model pairs, as values and their weights, have to be equally long in
    every row, or the model pairs them across rows whatever runs it.
    """
    if one == other:
        return True
    lists = [str(each[0]) for each in (one, other) if len(each) == 1]
    of_features = all(each.startswith("elements:") and "?" not in each for each in lists)
    domains = {each.rpartition("@")[2] for each in lists}
    return len(lists) == 2 and of_features and len(domains) == 1


def join(one: Fact, other: Fact) -> Fact:
    """The fact of a tensor that is one or the other."""
    for fact in (one, other):
        if fact.kind is Kind.MIXED:
            return mixed(fact.why)
    if one.axes is None or other.axes is None:  # a list nobody has written to yet
        return other if one.axes is None else one
    if one.axes != other.axes:
        return mixed("its shape differs from way to way")
    kinds = {one.kind, other.kind}
    if len(kinds) > 1 and kinds != {Kind.FIXED, Kind.ROWS}:
        return mixed("sizes in one way and values in the other")
    if (one.refers, one.places) != (other.refers, other.places):
        return mixed("positions in one way and values in the other")
    kind = Kind.ROWS if Kind.ROWS in kinds else one.kind
    return Fact(
        kind,
        one.axes,
        one.lengths | other.lengths,
        one.fills if one.fills == other.fills else (),
        one.uniform if one.uniform == other.uniform else None,
        one.sizes if one.sizes == other.sizes else None,
        one.refers,
        one.places,
        one.mark if one.mark == other.mark else None,
        may_break=one.may_break or other.may_break,
    )
