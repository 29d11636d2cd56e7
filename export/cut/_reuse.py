"""How often recorded requests ask for a user or an item that an earlier row had."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Row = Mapping[str, bytes]
"""The serialized features of a tf.Example by name."""

_LISTED = 5  # features that made items new


@dataclass(frozen=True)
class Reuse:
    """The hits of a server that keeps every state.

    Attributes:
        requests: requests, so users asked for.
        users_found: how many of these users were asked for before.
        rows: candidates of all requests.
        items_found: how many of these items were scored before, in any request.
        made_new: item features by the number of rows that were new because of this feature alone:
            with its value as it was in an earlier row they would have been found.
    """

    requests: int
    users_found: int
    rows: int
    items_found: int
    made_new: Mapping[str, int] = field(default_factory=dict)

    def line(self) -> str:
        """The essentials."""
        told = (
            f"of the recorded requests {_share(self.users_found, self.requests)} had a user, and"
            f" {_share(self.items_found, self.rows)} of the rows an item, that was there before"
        )
        if self.made_new:
            name, rows = next(iter(self.made_new.items()))
            told += f"; {name} alone made {_share(rows, self.rows)} new"
        return told


def count_reuse(
    requests: Iterable[Sequence[Row]], user: Collection[str], items: Collection[str]
) -> Reuse:
    """Counts what is found again.

    Args:
        requests: the rows of each; the first row's user is the request's.
        user: names of the user's features.
        items: names of the items'.
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
                # Seen from any other feature's side, this row is known from now on.
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
