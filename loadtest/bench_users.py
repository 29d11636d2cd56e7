"""Several users in one request against a request per user, on `wide`, with nothing cached."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import encode_predict_request
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Request
from colcast.loadtest.correctness import outputs_difference, reference_answers
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.recording import Recording
from colcast.loadtest.server_variants import servers
from colcast.loadtest.variants import Column, Variant, answered

USERS, CANDIDATES, ROUNDS = 15, 70, 6
_CLIENTS, _GROUPS_PER_ROUND, _HELD_BACK = 4, 8, 2
COLUMNS = (
    Column(
        f"CPU ms of {USERS} users",
        lambda it: 1000 * it.server_cpu_seconds / _GROUPS_PER_ROUND,
        compared=True,
    ),
)

Groups = Sequence[tuple[list[Request], Request]]  # a request per user, and one for all of them


def several_users(base_path: Path) -> Iterator[tuple[str, list[Variant]]]:
    """Each way on a server of its own; every user and item is new."""
    groups = [_group(seed) for seed in range((1 + ROUNDS) * _GROUPS_PER_ROUND + _HELD_BACK)]
    with servers("wide", base_path, [], []) as both, ExitStack() as connected:
        checked = _difference(both[0].target, both[1].target, groups[-_HELD_BACK:])

        def variant(title: str, place: int) -> Variant:
            loop = connected.enter_context(ClosedLoop(both[place].target, _CLIENTS))
            meter = ProcessMeter(both[place].pid)

            def turn(number: int) -> Recording:
                start = (1 + number) * _GROUPS_PER_ROUND
                part = groups[start : start + _GROUPS_PER_ROUND]
                sent = [it for alone, one in part for it in ([one] if place else alone)]
                return answered(loop.run(sent, calls=len(sent), meter=meter))

            return Variant(title, turn)

        yield (
            f"{USERS} users, N = {CANDIDATES} each; difference {checked:.1g}",
            [variant(f"in {USERS} requests", 0), variant("in one", 1)],
        )


def _group(seed: int) -> tuple[list[Request], Request]:
    """The same candidates in a request per user, and in one request."""
    from colcast.zoo.catalog import Catalog
    from colcast.zoo.wide import WIDE

    rows = USERS * CANDIDATES
    user = Catalog(WIDE, "user", USERS, seed=2 * seed).columns(np.arange(USERS))
    item = Catalog(WIDE, "item", rows, seed=2 * seed + 1).columns(np.arange(rows))

    def of_one(one: int) -> Request:
        own = slice(one * CANDIDATES, (one + 1) * CANDIDATES)
        columns = {name: values[one : one + 1] for name, values in user.items()}
        return _request(columns | {name: values[own] for name, values in item.items()}, CANDIDATES)

    row_to_user = np.repeat(np.arange(USERS, dtype=np.int64), CANDIDATES)
    return [*map(of_one, range(USERS))], _request(user | item | {"row_to_user": row_to_user}, rows)


def _request(columns: dict[str, Any], rows: int) -> Request:
    return Request(encode_predict_request("wide", "columnar_late", columns), rows)


def _difference(first: str, second: str, groups: Groups) -> float:
    """The largest of a score between the two ways."""
    differences = []
    for alone, together in groups:
        answers = reference_answers(first, alone)
        stacked = {name: np.concatenate([it[name] for it in answers]) for name in answers[0]}
        (joined,) = reference_answers(second, [together])
        differences.append(outputs_difference(stacked, joined))
    return max(differences)
