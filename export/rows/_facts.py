"""Facts about a tensor that are known before any run: how its values depend on the run's rows.

A dimension is a product of factors, the slowest first: `("rows:candidate", 4)` is four entries for
each candidate, candidate by candidate. A factor is a number or one of these labels:

    rows:D       the rows of domain D
    longest:F    the length of feature F's longest list in the run
    longest+1:F  the same, plus 1
    elements:S   all elements of lists S, row by row
    distinct:P   the distinct values that op P finds in the run, in any order
    splits:S     the row splits of lists S (one more than rows), where each list begins and ends
    size:X       a size that is the same in every run
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Factor = int | str
Axis = tuple[Factor, ...]
"""One dimension; `()` is a dimension of size 1."""
Axes = tuple[Axis, ...]


class Kind(enum.Enum):
    """What the values of a tensor depend on."""

    FIXED = "fixed"  # no row: weights, constants, inputs without rows
    SIZES = "sizes"  # only the sizes of the run: shapes, counts
    ROWS = "rows"  # each entry depends on its own row and no other
    SPLITS = "splits"  # the index, among all elements, at which each row's lists end
    MIXED = "mixed"  # possibly other rows


@dataclass(frozen=True)
class Fact:
    """What is known about one tensor.

    Attributes:
        kind: what its values depend on.
        axes: its dimensions; None if not even their number is known.
        lengths: features whose longest list in the run affects the values.
        fills: for each `longest` dimension, the padding after the end of each list: a number or
            bytes; None if it may be anything.
        uniform: the value of all entries; None if they differ or are unknown.
        sizes: for SIZES: the size in each entry of the vector, or in the scalar; None if unknown.
            For a TensorList without entries: its length.
        refers: for positions: the dimension that they index; each refers to an entry of its own
            row.
        places: `refers` for each column of the last dimension; None for a column of plain values.
        mark: the tensor's role for the lists of a feature: ("length" | "mask" | "position" | "ends"
            | "starts" | "splits", lists).
        why: for MIXED: the node and what it does.
        least: a lower bound of all entries; None if unknown.
        most: for MIXED: a size that bounds all entries from above; None if unknown.
        below: whether all entries are strictly less than that size.
        may_break: whether entries may be NaN or infinite although all columns are finite.
        value: for FIXED tensors with few numbers: the values.
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
        return None if self.axes is None else len(self.axes)

    @property
    def plain(self) -> bool:
        """Whether entries are values rather than positions."""
        return self.refers is None and self.places is None

    def fill(self, number: int) -> Any:
        """The padding after the end of lists along a dimension; None if it may be anything."""
        if self.uniform is not None:
            return self.uniform
        return self.fills[number] if self.fills else None

    def changed(self, **changes: Any) -> "Fact":
        """The fact for new values that depend on the same rows.

        Drops `mark`, `fills`, `uniform` and `value`, unless `changes` has them.
        """
        own = {"mark": None, "fills": (), "uniform": None, "value": None}
        return replace(self, **{**own, **changes})


def fixed(axes: Axes | None, value: Any = None) -> Fact:
    """A tensor that depends on no row."""
    one = np.reshape(value, [-1])[0] if value is not None and np.size(value) == 1 else None
    breaks = not np.all(np.isfinite(value)) if np.asarray(value).dtype.kind == "f" else False
    return Fact(Kind.FIXED, axes, value=value, uniform=one, least=_least(value), may_break=breaks)


def _least(value: Any) -> float | None:
    """The smallest number in `value`; None if `value` is empty or not numeric."""
    numbers = np.asarray(() if value is None else value)
    return float(numbers.min()) if numbers.size and numbers.dtype.kind in "biuf" else None


def mixed(why: str) -> Fact:
    """A tensor whose entries may depend on other rows."""
    return Fact(Kind.MIXED, why=why)


def sizes(entries: Iterable[Axis | None], scalar: bool = False) -> Fact:
    """A vector of sizes, or a scalar size."""
    entries = tuple(entries)
    return Fact(Kind.SIZES, () if scalar else (axis(len(entries)),), sizes=entries)


def axis(*factors: Factor) -> Axis:
    """A dimension with these factors; multiplies adjacent numbers and drops ones."""
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


def is_shared(each: Axis) -> bool:
    """Whether several rows may have the same entry of a dimension, as rows with equal values do."""
    return any(label.startswith("distinct:") for label in labels([each]))


def is_counted(each: Axis) -> bool:
    """Whether the size of a dimension is a number."""
    return all(isinstance(factor, int) for factor in each)


def has_rows(axes: Iterable[Axis | None]) -> bool:
    """Whether any of the dimensions has entries of different rows."""
    return any(map(is_of_rows, labels(axes)))


def longest(axes: Iterable[Axis | None]) -> frozenset[str]:
    """The features whose longest list determines the size of one of the dimensions."""
    found = [label.partition(":") for label in labels(axes)]
    return frozenset(lists for kind, _, lists in found if kind.startswith("longest"))


def displaced(axes: Iterable[Axis]) -> frozenset[str]:
    """The features whose longest list determines where entries of a dimension are.

    In a dimension of several lists, one after another, each list begins where the padding of the
    one before it ends.
    """
    return longest(each[1:] for each in axes if not has_rows([each]))


def same_size(one: Axis, other: Axis) -> bool:
    """Whether two dimensions have the same factors, in any order."""
    return sorted(map(str, one)) == sorted(map(str, other))


def broadcast(one: Axes, other: Axes) -> tuple[Axes, frozenset[str]] | None:
    """The dimensions of an op over two tensors; None if it would combine different rows.

    If a dimension has the lists of two features, either they are equally long or one has length 1.
    Which case holds depends on both features; the second result names them.
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
            made.append(a)  # the other size must be 1; any other would fit only one number of rows
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
    """Whether a dimension's size is unknown but the same in all runs."""
    return bool(each) and all(str(factor).startswith("size:") for factor in each)


def has_open(each: Axis) -> bool:
    """Whether a factor of a dimension's size is unknown and independent of rows."""
    return any(str(factor).startswith("size:") for factor in each)


def without_open(each: Axis) -> Axis:
    """Replaces unknown fixed sizes with 1 in a dimension with entries of different rows.

    With any other size, the dimension would have a wrong number of rows, and a run would fail.
    """
    if not has_rows([each]):
        return each
    return tuple(factor for factor in each if not str(factor).startswith("size:"))


def are_aligned(one: Axis, other: Axis) -> bool:
    """Whether entries at the same position in two dimensions belong to the same row.

    If a model pairs the lists of two features, such as values and weights, they must be equally
    long in every row; otherwise the model itself pairs them across rows.
    """
    if one == other:
        return True
    lists = [str(each[0]) for each in (one, other) if len(each) == 1]
    of_features = all(each.startswith("elements:") and "?" not in each for each in lists)
    domains = {each.rpartition("@")[2] for each in lists}
    return len(lists) == 2 and of_features and len(domains) == 1


def join(one: Fact, other: Fact) -> Fact:
    """The fact that holds for both of two tensors, such as the results of two branches."""
    for fact in (one, other):
        if fact.kind is Kind.MIXED:
            return mixed(fact.why)
    if one.axes is None or other.axes is None:  # a TensorList without entries
        return other if one.axes is None else one
    if one.axes != other.axes:
        return mixed("its shape differs between branches")
    kinds = {one.kind, other.kind}
    if len(kinds) > 1 and kinds != {Kind.FIXED, Kind.ROWS}:
        return mixed("sizes in one branch and values in the other")
    if (one.refers, one.places) != (other.refers, other.places):
        return mixed("positions in one branch and values in the other")
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
