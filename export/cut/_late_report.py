"""The report on a late signature: which nodes were moved, which were not, and the proof."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from colcast.export.graph._comparison import Differences


@dataclass(frozen=True)
class FrontierTensor:
    """A user-side tensor that ops at N rows read.

    Attributes:
        name: its name in the columnar signature's graph.
        dtype: the name of its dtype.
        shape: its shape at one row; None for sizes that differ between requests.
        how: how its readers use it: "repeated" (N times), "broadcast" (the reader itself repeats
            the row), "constant" (unchanged), "split" (its product is computed once), "shape" (its
            first entry is multiplied by N), or several of these.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    how: str


@dataclass(frozen=True)
class LateReport:
    """The report on a late signature.

    Attributes:
        signature: the name of the new signature.
        user_features: features sent as one row.
        item_features: features sent as N rows.
        ops: number of the columnar signature's ops that depend on its inputs.
        user_ops: number of these that now run once per request.
        user_time_share: the share of `columnar_ms` that they take.
        columnar_ms: op time of the columnar signature at `timed_rows` candidates, in ms.
        late_ms: the same for the late signature.
        timed_rows: number of candidates in the timed requests.
        frontier: the user-side tensors that ops at N rows read.
        refused: tensors and ops that read only user columns but run at N rows, with the reason.
        split_products: products whose user part is computed once.
        proof: largest relative difference by number of candidates and output.
        moderated: for outputs that differ only on large floats, the largest relative difference.
            The proof ignores it, because the same request with floats scaled to [-1, 1] agrees.
        slowest_refused: a sentence on the slowest entry of `refused`; "" if none takes time.
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
        """The share of the columnar op time saved; negative if the late signature is slower.

        0 if the columnar signature takes no time.
        """
        return 1 - self.late_ms / self.columnar_ms if self.columnar_ms else 0.0

    def why_nothing_moved(self) -> str | None:
        """Why the signature is no better than expanding its inputs; None if it is."""
        if self.user_ops or self.split_products:
            return None
        if not self.user_features:
            return "no feature is the user's"
        if self.refused:
            return "; ".join(f"{name}: {why}" for name, why in self.refused.items())
        return "every op that reads a user feature reads an item feature, too"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
