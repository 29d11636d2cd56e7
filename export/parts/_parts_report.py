"""What became of the three parts, for people and for colcast.json."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from colcast.export.parts._reuse import Reuse

_SHOWN = 4


@dataclass(frozen=True)
class State:
    """One state.

    Attributes:
        tensor: of the late signature's graph.
        dtype: its dtype's name.
        shape: of one row; None where it differs from row to row.
    """

    tensor: str
    dtype: str
    shape: tuple[int | None, ...]


@dataclass(frozen=True)
class PartsReport:
    """What became of a late signature.

    Attributes:
        written: whether the three signatures are there.
        reason: why not; "" if they are.
        users_per_run: "many" where one run of the pair part scores the candidates of several
            users, "one" where it has to be run for each of them.
        why_one: why it is "one".
        signatures: of the user's, the items' and the pair part.
        context_features: columns that go to the pair part.
        user_states: what is kept of a user.
        item_states: what is kept of an item.
        pair_ops: how many ops of the late signature are left to the pair part.
        not_states: user-only and item-only ops that the pair part runs, with the reason.
        difference: largest relative difference to the late signature, by output.
        reuse: what recorded requests would have found again, if there are any.
    """

    written: bool
    reason: str = ""
    users_per_run: str = "one"
    why_one: str = ""
    signatures: tuple[str, ...] = ()
    context_features: tuple[str, ...] = ()
    user_states: tuple[State, ...] = ()
    item_states: tuple[State, ...] = ()
    pair_ops: int = 0
    not_states: Mapping[str, str] = field(default_factory=dict)
    difference: Mapping[str, float] = field(default_factory=dict)
    reuse: Reuse | None = None

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The report for a console, a line each."""
        if not self.written:
            return [f"three parts: not written: {self.reason}", *self._not_states()]
        worst = max(self.difference.values(), default=0.0)
        users = "several users in one run" if self.users_per_run == "many" else "one user per run"
        told = [
            f"three parts: {', '.join(self.signatures)}: {users},"
            f" largest relative difference {worst:.1e}"
        ]
        if self.why_one:
            told.append(f"  one user per run, because {self.why_one}")
        told += _states("of a user", self.user_states) + _states("of an item", self.item_states)
        if self.reuse:
            told.append(f"  {self.reuse.line()}")
        return told + self._not_states()

    def _not_states(self) -> list[str]:
        if not self.not_states:
            return []
        entries = [f"    {name}: {why}" for name, why in self.not_states.items()]
        more = len(entries) - _SHOWN
        return [
            "  computed for each pair all the same:",
            *entries[:_SHOWN],
            *([f"    and {more} more"] if more > 0 else []),
        ]


def _states(whose: str, states: tuple[State, ...]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for state in states:
        sizes = ", ".join("?" if size is None else str(size) for size in state.shape)
        groups.setdefault(f"{state.dtype} [{sizes}]", []).append(state.tensor)
    return [
        f"  kept {whose}: {len(tensors)} x {kind}: {tensors[0]}{', ...' * (len(tensors) > 1)}"
        for kind, tensors in groups.items()
    ]
