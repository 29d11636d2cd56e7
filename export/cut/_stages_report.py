"""The report of the stages, for people and for colcast.json."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from colcast.export.cut._listed import grouped, listed
from colcast.export.cut._reuse import Reuse
from colcast.export.graph._colours import ITEM, USER
from colcast.export.rows import Independence

_SHOWN = 4


@dataclass(frozen=True)
class State:
    """One state.

    Attributes:
        tensor: of the late graph.
        dtype: its dtype's name.
        shape: of one row; None where it differs from row to row.
    """

    tensor: str
    dtype: str
    shape: tuple[int | None, ...]


States = Mapping[str, tuple[State, ...]]
"""By domain."""


@dataclass(frozen=True)
class StagesReport:
    """The stages of a late signature, or why there are none.

    Attributes:
        written: whether its stages are there.
        reason: why not; "" if they are.
        domains: those with a stage, the user and the items first; none if nothing was written.
        left_out: domains that are left to the candidates, with the reason.
        users_per_run: "many" where one run of the last stage scores the candidates of several
            users, "one" where it has to be run for each of them.
        why_one: why it is "one".
        signatures: of each domain's stage and of the last one.
        context_features: columns that go to the last stage.
        states: what is kept of a row of each domain.
        pair_ops: how many ops of the late graph are left to the last stage.
        not_states: ops of one domain that the last stage runs, with the reason.
        difference: largest relative difference to the late signature, by output.
        independence: what may be done with the rows of each signature, by name.
        reuse: what recorded requests would have found again, if there are any.
    """

    written: bool
    reason: str = ""
    domains: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    users_per_run: str = "one"
    why_one: str = ""
    signatures: tuple[str, ...] = ()
    context_features: tuple[str, ...] = ()
    states: States = field(default_factory=dict)
    pair_ops: int = 0
    not_states: Mapping[str, str] = field(default_factory=dict)
    difference: Mapping[str, float] = field(default_factory=dict)
    independence: Mapping[str, Independence] = field(default_factory=dict)
    reuse: Reuse | None = None

    @property
    def user_states(self) -> tuple[State, ...]:
        """The states of a user."""
        return self.states.get(USER, ())

    @property
    def item_states(self) -> tuple[State, ...]:
        """The states of an item."""
        return self.states.get(ITEM, ())

    def to_json(self) -> dict[str, Any]:
        """Plain values; the user's and the items' states have their old names, too."""
        values = {key: value for key, value in asdict(self).items() if key != "independence"}
        for domain in (USER, ITEM):
            values[f"{domain}_states"] = values["states"].get(domain, ())
        return values

    def lines(self) -> list[str]:
        """The report for a console, a line each."""
        left_out = [
            f"  {domain} is left to the candidates: {why}" for domain, why in self.left_out.items()
        ]
        if not self.written:
            return [f"stages: not written: {self.reason}", *left_out, *self._not_states()]
        worst = max(self.difference.values(), default=0.0)
        users = "several users in one run" if self.users_per_run == "many" else "one user per run"
        told = [
            f"stages: {', '.join(self.signatures)}: {users},"
            f" largest relative difference {worst:.1e}"
        ]
        if self.why_one:
            told.append(f"  one user per run, because {self.why_one}")
        for domain, states in self.states.items():
            told += _states(one(domain), states)
        told += left_out
        if self.reuse:
            told.append(f"  {self.reuse.line()}")
        return told + self._not_states()

    def _not_states(self) -> list[str]:
        entries = [f"{name}: {why}" for name, why in self.not_states.items()]
        return listed("computed for each pair all the same", entries, _SHOWN)


def one(domain: str) -> str:
    """`a user`, `an item`."""
    return f"{'an' if domain[0] in 'aeio' else 'a'} {domain}"


def _states(whose: str, states: tuple[State, ...]) -> list[str]:
    kinds = grouped((state.tensor, state.dtype, state.shape, "") for state in states)
    return [f"  kept of {whose}: {kind}" for kind in kinds]
