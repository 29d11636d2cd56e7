"""Finds how a columnar signature's tensors depend on the number of rows: by the rule, and by runs.

The independence rule says what a user-side tensor should be; runs with one, several and many copies
of a user's row may contradict it, but never allow what it does not.
"""

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from colcast.export.graph._comparison import relative_difference
from colcast.export.graph._probe import Probe
from colcast.export.graph._sessions import Array
from colcast.export.rows import Fact
from colcast.export.rows._facts import has_rows
from colcast.export.trials._rows import Rows

REPEATS = (2, 3, 64)
"""How often trials repeat a user row."""


class RowKind(enum.Enum):
    """How a tensor depends on the number of rows."""

    ROW = "row-like"  # N rows give N copies of the result for one row
    CONSTANT = "constant"  # the same for any number of rows
    OTHER = "other"


@dataclass(frozen=True)
class Finding:
    """What is known about one tensor.

    Attributes:
        kind: its kind. For an item tensor, ROW means that the first dimension follows N.
        shape: its shape at one row; None for sizes that differ between requests.
        axis: for ROW: the dimension that follows the rows; 0 unless the model has transposed it.
        reason: for OTHER: what the rule says or what was observed.
    """

    kind: RowKind
    shape: tuple[int | None, ...] | None = None
    axis: int = 0
    reason: str = ""

    def is_one_row(self, rank: int | None = None) -> bool:
        """Whether the tensor has exactly one row per candidate (and `rank`, if given)."""
        if self.kind is not RowKind.ROW or self.axis or not self.shape or self.shape[0] != 1:
            return False
        return rank is None or rank == len(self.shape)


Findings = dict[str, Finding]


def by_rule(fact: Fact) -> Finding:
    """What a user-side tensor must be, if all rows are copies of one user's row."""
    if fact.kind == "mixed":
        return Finding(RowKind.OTHER, reason=fact.why)
    if fact.kind == "size":
        counts = has_rows(*fact.sizes)
        return Finding(RowKind.OTHER, reason=_COUNT) if counts else Finding(RowKind.CONSTANT)
    of = fact.of if isinstance(fact.of, tuple) else ()
    if fact.kind in ("indices", "splits") or (fact.kind == "ids" and not _distinct(of)):
        return Finding(RowKind.OTHER, reason="positions of rows")
    counting = [axis for axis, each in enumerate(fact.axes) if has_rows(each)]
    if not counting or _distinct(fact.axes[counting[0]]):  # copies have the same distinct values
        return Finding(RowKind.CONSTANT)
    return Finding(RowKind.ROW, axis=counting[0])


_COUNT = "computed from a number of rows"


def _distinct(axis: Collection[object]) -> bool:
    return any(str(factor).startswith("distinct:") for factor in axis)


def user_findings(
    probe: Probe,
    users: Iterable[Rows],
    facts: Mapping[str, Fact],
    tolerances: Iterable[float],
    tensors: Collection[str],
) -> dict[float, Findings]:
    """Determines, for each tolerance, the kind of tensors that depend only on user features.

    Args:
        probe: runs the tensors, and possibly others.
        users: requests of one user each.
        facts: the independence rule's fact for every tensor.
        tolerances: largest differences that count as equal, relative to a tensor's largest value,
            because sums over more rows may be added in another order.
        tensors: the tensors' names in the probe.
    """
    ruled = {tensor: by_rule(facts[tensor]) for tensor in tensors}
    found = {tolerance: dict(ruled) for tolerance in tolerances}
    for user in users:
        runs = {rows: probe(user[:rows].columns()) for rows in (1, *REPEATS)}
        for tensor in tensors:
            values = {rows: run[tensor] for rows, run in runs.items()}
            shape = values[1].shape
            for tolerance, of in found.items():
                why = _contradiction(of[tensor], values, tolerance)
                now = Finding(RowKind.OTHER, reason=why) if why else of[tensor]
                of[tensor] = _with_shape(of[tensor], now, shape)
    return found


def follow_rows(probe: Probe, requests: Mapping[int, Rows]) -> Findings:
    """Finds the item tensors whose first dimension follows the number of candidates.

    Args:
        probe: runs the tensors.
        requests: requests by number of candidates, with at least two different numbers.
    """
    found: Findings = {}
    for rows, request in requests.items():
        for tensor, value in probe(request[:rows].columns()).items():
            scales = value.ndim > 0 and value.shape[0] > 0 and value.shape[0] % rows == 0
            shape = (value.shape[0] // rows, *value.shape[1:]) if scales else value.shape
            now = Finding(RowKind.ROW if scales else RowKind.OTHER)
            before = found.get(tensor, now)
            kept = now if before.kind is RowKind.ROW else before
            found[tensor] = _with_shape(before, kept, shape)
    return found


_RANKS = "its rank differs from request to request"


def _with_shape(before: Finding, now: Finding, shape: tuple[int, ...]) -> Finding:
    """Adds the shape of one more run with one row. A size that differs between runs is None."""
    if before.reason == _RANKS or (before.shape is not None and len(before.shape) != len(shape)):
        return Finding(RowKind.OTHER, reason=_RANKS)
    known = shape if before.shape is None else before.shape
    sizes = (a if a == b else None for a, b in zip(known, shape, strict=True))
    return replace(now, shape=tuple(sizes))


def _contradiction(finding: Finding, values: Mapping[int, Array], tolerance: float) -> str:
    """How runs contradict a finding; "" if they do not."""
    single = values[1]
    for rows, value in values.items() if finding.kind is not RowKind.OTHER else ():
        expected = single
        if finding.kind is RowKind.ROW and rows > 1:
            expected = np.concatenate([single] * rows, finding.axis)
        if not _equal(expected, value, tolerance):
            small = value.size <= 12 and single.size <= 4
            shown = f": {single.tolist()} at 1, {value.tolist()} at {rows}" if small else ""
            return f"not what the rule says at {rows} rows{shown}"
    return ""


def _equal(one: Array, other: Array, tolerance: float) -> bool:
    """Whether tensors are equal; the tolerance of floats is relative to the largest one."""
    if one.shape != other.shape:
        return False
    if bool(np.all(one == other)) or one.dtype.kind not in "fc":
        return bool(np.all(one == other))
    largest = float(np.max(np.abs(one), initial=0.0, where=np.isfinite(one)))
    return bool(relative_difference(one, other, largest).max(initial=0.0) <= tolerance)
