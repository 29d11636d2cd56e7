"""The report of the stages, for console and colcast.json."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from colcast.export.cut._late_report import grouped, listed
from colcast.export.graph._colours import ITEM, USER
from colcast.export.rows._independence import Independence

Row = Mapping[str, bytes]
"""The serialized features of a tf.Example by name."""


@dataclass(frozen=True)
class Reuse:
    """The hits that requests would have in a state cache that never evicts.

    Attributes:
        requests: number of requests; each has one user.
        users_found: number of requests whose user was in an earlier request.
        rows: number of candidates in all requests.
        items_found: number of candidates whose item had been scored before, in any request.
    """

    requests: int
    users_found: int
    rows: int
    items_found: int

    def line(self) -> str:
        return (
            f"in the recorded requests, {_share(self.users_found, self.requests)} of users and"
            f" {_share(self.items_found, self.rows)} of item rows had been seen before"
        )


def count_reuse(
    requests: Iterable[Sequence[Row]], user: Collection[str], items: Collection[str]
) -> Reuse:
    """Counts the hits that requests would have.

    Args:
        requests: the rows of each request; the first row's user is the request's.
        user: names of the user's features.
        items: names of the items' features.
    """
    users, items_seen, counted = set[int](), set[int](), Counter[str]()
    for rows in requests:
        counted["requests"] += 1
        counted["users_found"] += _is_known(users, rows[0], user)
        for row in rows:
            counted["rows"] += 1
            counted["items_found"] += _is_known(items_seen, row, items)
    return Reuse(**{each.name: counted[each.name] for each in fields(Reuse)})


def _is_known(seen: set[int], row: Row, names: Collection[str]) -> bool:
    key = hash(frozenset((name, row.get(name)) for name in names))
    known = key in seen
    seen.add(key)
    return known


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "none"


_SHOWN = 4


@dataclass(frozen=True)
class State:
    """A tensor that a stage computes for each row and later stages read.

    Attributes:
        tensor: its name in the late graph.
        dtype: the name of its dtype.
        shape: the shape of one row; None for sizes that differ between rows.
    """

    tensor: str
    dtype: str
    shape: tuple[int | None, ...]


States = Mapping[str, tuple[State, ...]]
"""States by domain."""


@dataclass(frozen=True)
class StagesReport:
    """The stages of a late signature, or why there are none.

    Attributes:
        written: whether the stages were written.
        reason: why not; "" if they were.
        domains: domains with a stage, user and item first; empty if nothing was written.
        left_out: domains without a stage, with the reason.
        users_per_run: "many" if one run of the last stage scores candidates of several users, "one"
            if each user needs a run.
        why_one: why it is "one".
        signatures: names of the stages' signatures, the last stage's included.
        context_features: columns that the last stage reads.
        states: the cached states of a row, by domain.
        pair_ops: number of the late graph's ops that the last stage runs.
        not_states: ops of one domain that the last stage runs, with the reason.
        difference: largest relative difference from the late signature, by output.
        independence: how the rows of each signature may be batched and cached, by name.
        reuse: cache hits in recorded requests; None if none were recorded.
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
        return self.states.get(USER, ())

    @property
    def item_states(self) -> tuple[State, ...]:
        return self.states.get(ITEM, ())

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if key != "independence"}

    def lines(self) -> list[str]:
        """The report for a console, one string per line."""
        left_out = [
            f"  {domain} has no stage; the last stage reads its columns: {why}"
            for domain, why in self.left_out.items()
        ]
        if not self.written:
            return [f"stages: not written: {self.reason}", *left_out, *self._not_states()]
        worst = max(self.difference.values(), default=0.0)
        users = "several users in one run" if self.users_per_run == "many" else "one user per run"
        lines = [
            f"stages: {', '.join(self.signatures)}: {users},"
            f" largest relative difference {worst:.1e}"
        ]
        if self.why_one:
            lines.append(f"  one user per run, because {self.why_one}")
        for domain, states in self.states.items():
            lines += _states(one(domain), states)
        lines += left_out
        if self.reuse:
            lines.append(f"  {self.reuse.line()}")
        return lines + self._not_states()

    def _not_states(self) -> list[str]:
        entries = [f"{name}: {why}" for name, why in self.not_states.items()]
        return listed("still computed per candidate", entries, _SHOWN)


def one(domain: str) -> str:
    """The domain with an article: `a user`, `an item`."""
    return f"{'an' if domain[0] in 'aeio' else 'a'} {domain}"


def _states(whose: str, states: tuple[State, ...]) -> list[str]:
    kinds = grouped((state.tensor, state.dtype, state.shape, "") for state in states)
    return [f"  cached for {whose}: {kind}" for kind in kinds]
