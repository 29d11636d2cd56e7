"""Counts how often recorded requests ask for a user or item that an earlier row had."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Row = Mapping[str, bytes]
"""The serialized features of a tf.Example by name."""

_LISTED = 5  # how many features to list as reasons for new items


@dataclass(frozen=True)
class Reuse:
    """The hits of a state cache that never evicts.

    Attributes:
        requests: number of requests, and so of users asked for.
        users_found: how many of these users had been asked for before.
        rows: candidates of all requests.
        items_found: how many of these items had been scored before, in any request.
        made_new: for each item feature, the number of rows that were new only because of it: with
            the feature's value from an earlier row they would have been hits.
    """

    requests: int
    users_found: int
    rows: int
    items_found: int
    made_new: Mapping[str, int] = field(default_factory=dict)

    def line(self) -> str:
        """A one-line summary."""
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
    """Counts the hits.

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
                # Whether an earlier row was equal apart from this feature.
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
