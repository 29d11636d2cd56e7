"""The report of the stages."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from colcast.export.graph._colours import ITEM, USER
from colcast.export.rows._independence import Independence
from colcast.export.trials._rows import Rows


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


def count_reuse(requests: Iterable[Rows], user: Sequence[str], items: Sequence[str]) -> Reuse:
    """Counts the hits that requests would have.

    Args:
        requests: the rows of each request; the first row's user is the request's.
        user: names of the user's features.
        items: names of the items' features.
    """
    users, seen, found = set[Any](), set[Any](), Counter[str]()
    for rows in requests:
        found["requests"] += 1
        found["users_found"] += _is_known(users, rows, 0, user)
        found["rows"] += len(rows)
        found["items_found"] += sum(_is_known(seen, rows, row, items) for row in range(len(rows)))
    return Reuse(**{each.name: found[each.name] for each in fields(Reuse)})


def _is_known(seen: set[Any], rows: Rows, row: int, names: Sequence[str]) -> bool:
    key = tuple(rows.cells[name].key(row) for name in names)
    known = key in seen
    seen.add(key)
    return known


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "none"


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
