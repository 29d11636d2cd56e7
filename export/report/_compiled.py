"""Ops that XLA compiles anew for each number of rows: what JAX and torch_xla export."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Compiled:
    """What compiling costs.

    Attributes:
        ops: how many such ops a signature has.
        cpu_ms: of a request with a number of candidates that none had before, beyond what the next
            one takes; None if the model refuses the rows that were tried.
        warmed: the numbers of candidates of the warm-up requests.
    """

    ops: int
    cpu_ms: float | None
    warmed: tuple[int, ...] = ()

    def told(self, signature: str) -> str:
        """What that means for a server."""
        of = f" ({', '.join(map(str, self.warmed))})" if self.warmed else ""
        but = f" but for those of its warm-up requests{of}" if self.warmed else ""
        cost = "" if self.cpu_ms is None else f": {self.cpu_ms:,.0f} ms of CPU each, measured here"
        return f"XLA compiles {signature} anew for every number of candidates it meets{but}{cost}"
