"""Several users in one request against a request per user, on `wide`, with nothing known."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import encode_predict_request
from colcast.loadtest.bench_states import MODEL
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Outputs, Request
from colcast.loadtest.correctness import outputs_difference, reference_answers
from colcast.loadtest.figures import milliseconds, share
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.progress import progress_bar
from colcast.loadtest.recording import Recording
from colcast.loadtest.turns import in_turn
from colcast.server import ServerProcess
from rich.console import Console

_SIGNATURE = "columnar_late"
_CLIENTS, _ROUNDS, _GROUPS_PER_ROUND, _HELD_BACK = 4, 6, 8, 2

Columns = dict[str, Any]


@dataclass(frozen=True)
class Joined:
    """CPU of one request with several users, and of a request per user.

    Attributes:
      users: in a request.
      candidates: of each user.
      alone_ms: server CPU of as many requests as there are users.
      together_ms: server CPU of the one request.
      groups: how many were measured, each both ways.
      errors: failed calls.
      difference: the largest difference of a score between the two.
    """

    users: int
    candidates: int
    alone_ms: float
    together_ms: float
    groups: int
    errors: int
    difference: float

    def __str__(self) -> str:
        return (
            f"{MODEL}, nothing known: {self.users} users with {self.candidates} candidates each, "
            f"server CPU: {milliseconds(self.alone_ms)} ms in {self.users} requests, "
            f"{milliseconds(self.together_ms)} ms in one, "
            f"{share(self.together_ms, self.alone_ms)}; {self.groups} groups, "
            f"{self.errors} errors, largest difference {self.difference:.1g}"
        )


def joined_users(
    base_path: Path, console: Console, *, users: int = 15, candidates: int = 70
) -> Joined:
    """Measures both ways in turn, each on a server of its own; every user and item is new."""
    groups = [_group(users, candidates, seed) for seed in range(1 + _groups() + _HELD_BACK)]
    both = [[request for one, _ in groups for request in one], [one for _, one in groups]]
    per_group = (users, 1)
    with (
        ServerProcess(MODEL, base_path) as first,
        ServerProcess(MODEL, base_path) as second,
        ClosedLoop(first.target, _CLIENTS) as apart,
        ClosedLoop(second.target, _CLIENTS) as joined,
    ):
        loops, meters = (apart, joined), [ProcessMeter(it.pid) for it in (first, second)]
        for loop, requests, count in zip(loops, both, per_group, strict=True):
            loop.run(requests[:count], calls=count)

        def window(way: int, number: int) -> Recording:
            advance()
            start = (1 + number * _GROUPS_PER_ROUND) * per_group[way]
            part = both[way][start : start + _GROUPS_PER_ROUND * per_group[way]]
            return loops[way].run(part, calls=len(part), meter=meters[way])

        with progress_bar(console, "several users in one request, in turn", 2 * _ROUNDS) as advance:
            alone, together = in_turn((0, 1), window, _ROUNDS)
        difference = _difference(first.target, second.target, groups[-_HELD_BACK:])
    found = Joined(
        users=users,
        candidates=candidates,
        alone_ms=_milliseconds(alone),
        together_ms=_milliseconds(together),
        groups=_groups(),
        errors=sum(recording.errors for recording in [*alone, *together]),
        difference=difference,
    )
    console.print(str(found), highlight=False)
    return found


def _groups() -> int:
    return _ROUNDS * _GROUPS_PER_ROUND


def _milliseconds(recordings: Sequence[Recording]) -> float:
    """Server CPU per group."""
    return 1000 * sum(one.server_cpu_seconds for one in recordings) / _groups()


def _group(users: int, candidates: int, seed: int) -> tuple[list[Request], Request]:
    """The same candidates in a request per user, and in one request."""
    from colcast.zoo.catalog import Catalog
    from colcast.zoo.wide import WIDE

    rows = users * candidates
    user = Catalog(WIDE, "user", users, seed=2 * seed).columns(np.arange(users))
    item = Catalog(WIDE, "item", rows, seed=2 * seed + 1).columns(np.arange(rows))
    alone = [
        _request(
            {name: values[one : one + 1] for name, values in user.items()}
            | {
                name: values[one * candidates : (one + 1) * candidates]
                for name, values in item.items()
            },
            candidates,
        )
        for one in range(users)
    ]
    row_to_user = np.repeat(np.arange(users, dtype=np.int64), candidates)
    return alone, _request(user | item | {"row_to_user": row_to_user}, rows)


def _request(columns: Columns, rows: int) -> Request:
    return Request(encode_predict_request(MODEL, _SIGNATURE, columns), rows)


def _difference(first: str, second: str, groups: Sequence[tuple[list[Request], Request]]) -> float:
    differences = []
    for alone, together in groups:
        answers = reference_answers(first, alone)
        stacked: Outputs = {
            name: np.concatenate([answer[name] for answer in answers]) for name in answers[0]
        }
        (joined,) = reference_answers(second, [together])
        differences.append(outputs_difference(stacked, joined))
    return max(differences)
