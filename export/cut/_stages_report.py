"""The report of the stages, for console and colcast.json."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from colcast.export.cut._late_report import grouped, listed
from colcast.export.graph._colours import ITEM, USER
from colcast.export.rows._independence import Independence

Row = Mapping[str, bytes]
"""The serialized features of a tf.Example by name."""

_LISTED = 5  # how many features to list as reasons for new items


@dataclass(frozen=True)
class Reuse:
    """The hits that requests would have in a state cache that never evicts.

    Attributes:
        requests: number of requests; each has one user.
        users_found: number of requests whose user was in an earlier request.
        rows: number of candidates in all requests.
        items_found: number of candidates whose item had been scored before, in any request.
        made_new: for each item feature, the number of rows that missed only because of it: they
            differ from an earlier row in no other feature.
    """

    requests: int
    users_found: int
    rows: int
    items_found: int
    made_new: Mapping[str, int] = field(default_factory=dict)

    def line(self) -> str:
        text = (
            f"in the recorded requests, {_share(self.users_found, self.requests)} of users and"
            f" {_share(self.items_found, self.rows)} of item rows had been seen before"
        )
        if self.made_new:
            name, rows = next(iter(self.made_new.items()))
            text += f"; {name} alone made {_share(rows, self.rows)} of rows miss"
        return text


def count_reuse(
    requests: Iterable[Sequence[Row]], user: Collection[str], items: Collection[str]
) -> Reuse:
    """Counts the hits that requests would have.

    Args:
        requests: the rows of each request; the first row's user is the request's.
        user: names of the user's features.
        items: names of the items' features.
    """
    users: set[int] = set()
    seen: set[int] = set()
    seen_without: dict[str, set[int]] = {name: set() for name in items}
    counted: Counter[str] = Counter()
    made_new: Counter[str] = Counter()
    for rows in requests:
        counted["requests"] += 1
        counted["users_found"] += _is_known(users, _key(rows[0], user))
        for row in rows:
            counted["rows"] += 1
            key = _key(row, items)
            found = _is_known(seen, key)
            counted["items_found"] += found
            for name in items:
                # Whether an earlier row was equal except for this feature.
                known = _is_known(seen_without[name], key ^ hash((name, row.get(name))))
                made_new[name] += known and not found
    most = {name: rows for name, rows in made_new.most_common(_LISTED) if rows}
    return Reuse(
        counted["requests"], counted["users_found"], counted["rows"], counted["items_found"], most
    )


def _key(row: Row, names: Collection[str]) -> int:
    key = 0
    for name in names:
        key ^= hash((name, row.get(name)))
    return key


def _is_known(seen: set[int], key: int) -> bool:
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
        """The report as JSON; `user_states` and `item_states` repeat entries of `states`."""
        values = {key: value for key, value in asdict(self).items() if key != "independence"}
        for domain in (USER, ITEM):
            values[f"{domain}_states"] = values["states"].get(domain, ())
        return values

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
