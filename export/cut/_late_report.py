"""The report of a late signature, for people and for colcast.json."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from colcast.export.cut._listed import grouped, listed
from colcast.export.graph._comparison import Differences

_LEAST_GAIN = 0.05  # less is no help
_SHOWN = 12  # lines of a list on the console


@dataclass(frozen=True)
class FrontierTensor:
    """A tensor of the user's side that ops at N rows read.

    Attributes:
        name: in the columnar signature's graph.
        dtype: its dtype's name.
        shape: at one row; None where it differs from request to request.
        how: what its readers do: "repeated" (N times), "broadcast" (the reader repeats one row by
            itself), "constant" (no need to), "split" (it is multiplied once), "shape" (its first
            entry is multiplied by N), or several of these.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    how: str


@dataclass(frozen=True)
class LateReport:
    """A late signature.

    Attributes:
        signature: the new signature.
        user_features: features sent as one row.
        item_features: features sent as N rows.
        ops: ops of the columnar signature that depend on its inputs.
        user_ops: how many of them now run once per request.
        user_time_share: their share of the columnar signature's op time at `timed_rows` candidates.
        columnar_ms: op time of the columnar signature at `timed_rows` candidates, in ms.
        late_ms: the same of the late one.
        timed_rows: candidates in the requests that were timed.
        frontier: the tensors where user and items meet.
        refused: user-only tensors and ops that still run at N rows, with the reason.
        split_products: products whose user half is computed once.
        proof: largest relative difference by number of candidates and output.
        moderated: output -> the largest relative difference on floats as drawn that does not count,
            since the same request agrees with its floats between -1 and 1.
        slowest_refused: the one of `refused` that takes longest, in words; "" if none takes time.
    """

    signature: str
    user_features: tuple[str, ...]
    item_features: tuple[str, ...]
    ops: int
    user_ops: int
    user_time_share: float
    columnar_ms: float
    late_ms: float
    timed_rows: int
    frontier: tuple[FrontierTensor, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    split_products: tuple[str, ...] = ()
    proof: Differences = field(default_factory=dict)
    slowest_refused: str = ""
    moderated: Mapping[str, float] = field(default_factory=dict)

    @property
    def gain(self) -> float:
        """The share of the columnar signature's op time that it saves; negative where it costs."""
        return 1 - self.late_ms / self.columnar_ms if self.columnar_ms else 0.0

    def why_no_gain(self) -> str | None:
        """Why it saves next to nothing; None if it does save."""
        if self.gain >= _LEAST_GAIN:
            return None
        reason = self.why_nothing_moved() or self.slowest_refused
        if "While" in reason:
            return f"{reason}: exported as a loop; unroll=True makes it ordinary ops"
        return reason or "nearly all of the time goes into ops that read items"

    def why_nothing_moved(self) -> str | None:
        """Why the signature does no better than expanding its inputs; None if it does."""
        if self.user_ops or self.split_products:
            return None
        if not self.user_features:
            return "no feature is the user's"
        if self.refused:
            return "; ".join(f"{name}: {why}" for name, why in self.refused.items())
        return "every op that reads a user feature reads an item feature, too"

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self)

    def summary(self) -> str:
        """How much runs once, and what that saves."""
        return (
            f"{self.signature}: {self.user_ops} of {self.ops} ops run once per request"
            f" ({self.user_time_share:.0%} of the time at {self.timed_rows} candidates):"
            f" {self.columnar_ms:.2f} -> {self.late_ms:.2f} ms"
        )

    def lines(self) -> list[str]:
        """The report for a console, a line each."""
        worst = max((d for by in self.proof.values() for d in by.values()), default=0.0)
        told = [
            self.summary(),
            f"  proved at {', '.join(map(str, self.proof))} candidates,"
            f" largest relative difference {worst:.1e}",
        ]
        told += [
            f"  {output} differs by {worst:.1e} on large floats;"
            " it agrees on floats between -1 and 1"
            for output, worst in self.moderated.items()
        ]
        if reason := self.why_nothing_moved():
            told.append(f"  nothing moved, user columns are repeated at the input: {reason}")
        elif reason := self.why_no_gain():
            told.append(f"  it does not help: {reason}")
        frontier = grouped((t.name, t.dtype, t.shape, f", {t.how}") for t in self.frontier)
        told += listed(f"frontier: {len(self.frontier)} tensors", frontier, _SHOWN)
        told += listed("split products", self.split_products, _SHOWN)
        refused = [f"{name}: {why}" for name, why in self.refused.items()]
        told += listed("runs at N rows all the same", refused, _SHOWN)
        return told
