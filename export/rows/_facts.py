"""The lattice: which rows a tensor's values depend on, and what its dimensions count.

A dimension is a product of factors, the slowest first; `()` is a dimension of size 1. A factor is

    4                 a number
    rows, rows:D      the rows of the run; of another domain D, which an index refers to
    elements:LIST     all entries of a list, row by row
    distinct:OP       the distinct values that an op finds, in any order
    splits:LIST       where each list begins and ends: one more than rows
    longest:LIST      the length of the longest list in the run
    width:LISTS|EXPR  another size that these lists determine; equal only if it is the same EXPR
    ?NAME             unknown, but the same in every run

A LIST is a feature, or `?OP` for lists that an op makes, followed by the steps that chose its
entries. The first four of the factors with names count rows: every entry of such a dimension
belongs to one row.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

Factor = int | str
Axis = tuple[Factor, ...]
Axes = tuple[Axis, ...]

R: Axis = ("rows",)
_STEP, _EXPR = "\x1f", "\x1e"  # in names of lists and widths; no feature's name has them
FILLED = "+"  # the step that adds an entry to each empty row
UNSURE = " are equally long"
_COUNT_ROWS = ("rows", "elements:", "distinct:", "splits:")


class Mixes(Exception):
    """Rows may affect each other; the message says how."""


def require(holds: object, why: str) -> None:
    if not holds:
        raise Mixes(why)


@dataclass(frozen=True)
class Fact:
    """What is known about one tensor in any run.

    Attributes:
        kind: "fixed": no row affects it; "rows": each entry depends on its own row alone; "size":
            sizes of the run; "ids": each entry is the position, in dimension `of`, of an entry of
            its own row; "indices": a matrix with the row of each entry (a position in `of`) and
            further numbers that depend on that row; "splits": row splits of a list; "mixed":
            anything.
        axes: the dimensions.
        pads: lists whose longest length in the run may affect the values.
        sizes: for "size": what each entry counts; None for -1. For "mixed": a lower bound. For
            "indices": not empty if positions may repeat.
        of: for "ids" and "indices": a dimension. Else the role of a tensor for a list: "splits",
            "starts", "ends", "lengths", "mask" (where it has entries), or "counts" for a column
            that a client sends, as "ROLE:LIST"; "positions:" for 0, 1, 2, ...
        same: for "rows": the values are the same in every row and every run.
        why: for "mixed": the reason.
    """

    kind: str
    axes: Axes = ()
    pads: frozenset[str] = frozenset()
    sizes: tuple[Axis | None, ...] = ()
    of: Axis | str | None = None
    same: bool = False
    why: str = ""

    @property
    def role(self) -> tuple[str, str]:
        """The role and the list of `of`; "" if it has none."""
        role, _, name = self.of.partition(":") if isinstance(self.of, str) else ("", "", "")
        return role, name

    def plain(self) -> "Fact":
        """The fact of a tensor whose entries are used as values."""
        if self.kind == "size":
            known = None not in self.sizes and not has_rows(*self.sizes)
            require(known, "the number of rows is used as a value")
            return Fact("fixed", self.axes, self.pads | lists_in(self.sizes))
        require(self.kind in ("fixed", "rows"), "the position of a row is used as a value")
        return self

    def reshaped(self, axes: Iterable[Axis], more: frozenset[str] = frozenset()) -> "Fact":
        """The fact of the same entries, in the same order, in other dimensions."""
        require(self.kind not in ("indices", "size", "splits"), "positions or sizes are reshaped")
        return checked(replace(self, axes=tuple(axes), pads=self.pads | more))

    def moved(self, axes: Iterable[Axis], more: frozenset[str] = frozenset()) -> "Fact":
        """The fact of the same entries in other dimensions."""
        if self.kind == "ids":
            return replace(self, axes=tuple(axes), pads=self.pads | more)
        return values([self], axes, more)


def declared(shape: Iterable[int | None], name: str) -> Fact:
    """The fact of a tensor that is the same in every run; its name names unknown sizes."""
    each = enumerate(shape)
    return Fact("fixed", tuple((f"?{name}/{n}",) if m is None else dim(m) for n, m in each))


def dim(*factors: Factor) -> Axis:
    """A dimension with these factors; multiplies adjacent numbers and drops ones."""
    made: list[Factor] = []
    for factor in factors:
        last = made[-1] if made else None
        if isinstance(factor, int) and isinstance(last, int):
            made[-1] = last * factor
        elif factor != 1:
            made.append(factor)
    return tuple(made)


def flat(axes: Iterable[Axis | None]) -> list[Factor]:
    """The factors of all dimensions."""
    return [factor for each in axes for factor in each or ()]


def names(axes: Iterable[Axis | None]) -> list[str]:
    """The factors that are names."""
    return [factor for factor in flat(axes) if isinstance(factor, str)]


def has_rows(*axes: Axis | None) -> bool:
    return any(name.startswith(_COUNT_ROWS) for name in names(axes))


def lists_in(axes: Iterable[Axis | None]) -> frozenset[str]:
    """The lists that determine the size of these dimensions."""
    found = set[str]()
    for kind, _, rest in (name.partition(":") for name in names(axes)):
        if kind == "width":
            found |= set(rest.partition(_EXPR)[0].split(_STEP))
        elif kind == "longest":
            feature, *steps = rest.split(_STEP)
            by_values = any(step != FILLED and step[0] != "[" for step in steps)
            found.add(f"?{feature} with a part of its entries" if by_values else feature)
    return frozenset(found)


def derived(axes: Iterable[Axis | None], expression: str) -> Axis:
    """A size that only these dimensions determine."""
    lists = _STEP.join(sorted(lists_in(axes)))
    return (f"width:{lists}{_EXPR}{expression}" if lists else f"?{expression}",)


def chosen(name: str, step: str) -> str:
    """The list with the entries of list `name` that a step chooses."""
    return f"{name}{_STEP}{step}"


def elements(name: str) -> Axis:
    return (f"elements:{name}",)


def list_of(axis: Axis) -> str:
    """The list whose entries a dimension has; one of a name of its own for as many in each row."""
    if axis[:1] == R:
        return "?" + "*".join(map(str, axis))
    of_list = len(axis) == 1 and str(axis[0]).startswith("elements:")
    require(of_list, "it is unknown which list the entries belong to")
    return str(axis[0]).removeprefix("elements:")


def paired(one: Axis, other: Axis) -> frozenset[str]:
    """What entries of two lists at the same position demand in order to belong to the same row.

    The same steps chose them from two features, which must be equally long in every row. For a
    single user they are, or the model fails; in a run of several rows the sums may be equal.
    """
    found = [name.partition(":")[2] for name in names([one, other]) if name[:9] == "elements:"]
    require(len({name.partition(_STEP)[0] for name in found}) > 1, "different rows meet")
    (a, *steps), (b, *more) = (name.split(_STEP) for name in found)
    unsure = f"cannot tell whether {a.lstrip('?')} and {b.lstrip('?')}{UNSURE}"
    require(len(one) == len(other) == 1 and "?" not in a[0] + b[0] and steps == more, unsure)
    return frozenset([f"?{unsure}"])


def checked(fact: Fact) -> Fact:
    """Demands the invariant: rows are the slowest factor of one dimension, of none if "fixed"."""
    if fact.kind in ("size", "mixed"):
        return fact
    marks = [[has_rows((factor,)) for factor in each] for each in fact.axes]
    slowest = sum(map(sum, marks)) < 2 and not any(any(each[1:]) for each in marks)
    require(slowest, "every row meets every other, or rows are not a dimension's slowest factor")
    require(any(map(any, marks)) != (fact.kind == "fixed"), "it depends on rows but has none")
    return fact


def verdict(fact: Fact) -> tuple[bool, tuple[str, ...] | str]:
    """Whether a tensor has one row per candidate, each from its own row alone.

    Returns:
        (True, the lists whose longest length in a run affects it) or (False, why not).
    """
    if fact.kind == "mixed":
        return False, fact.why
    if fact.kind != "rows" or fact.axes[:1] != (R,):
        return False, f"it does not have one row of values per candidate: {fact.kind} {fact.axes}"
    lists = sorted(fact.pads | lists_in(fact.axes))
    if made := [name[1:] for name in lists if name.startswith("?")]:
        unsure = f"it depends on the longest list that {made[0]} makes for any row"
        return False, made[0] if UNSURE in made[0] else unsure
    return True, tuple(lists)


def values(facts: Iterable[Fact], axes: Iterable[Axis], more: frozenset[str] = frozenset()) -> Fact:
    """The fact of values computed from all these tensors, each row's from its own."""
    facts, axes = [fact.plain() for fact in facts], tuple(axes)
    pads = more.union(*(fact.pads for fact in facts))
    of_rows = any(fact.kind == "rows" for fact in facts) or has_rows(*axes)
    same = of_rows and not pads and all(fact.kind == "fixed" or fact.same for fact in facts)
    return checked(Fact("rows" if of_rows else "fixed", axes, pads, same=same))


def apart(*axes: Axis | None) -> frozenset[str]:
    """Demands dimensions without rows; returns the lists that determine them."""
    require(not has_rows(*axes), "it works along rows, so it combines or moves them")
    return lists_in(axes)


def fixed(facts: Iterable[Fact]) -> frozenset[str]:
    """Demands values that no row affects; returns lists that may."""
    facts = [fact.plain() for fact in facts]
    require(all(fact.kind == "fixed" for fact in facts), "one row's value affects other rows")
    return frozenset[str]().union(*(fact.pads for fact in facts))


def equal(one: Axis, other: Axis) -> tuple[Axis, frozenset[str]]:
    """The size of two dimensions that TensorFlow demands to be equal, and lists that decide it."""
    if one == other:
        return one, frozenset()
    if has_rows(one, other):
        return one, paired(one, other)
    known = other if names([one]) and not names([other]) else one
    return known, lists_in([one, other])


def count(axis: Axis) -> int:
    """A size that is a number."""
    require(not names([axis]), "the size of a dimension is unknown before a run")
    return int(flat([axis])[0]) if axis else 1
