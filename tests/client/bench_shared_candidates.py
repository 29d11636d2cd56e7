"""15 users who share 70 candidates, nothing cached: a request each, and `rank_many`.

    python -m tests.client.bench_shared_candidates
    python -m tests.client.bench_shared_candidates --users 50 --candidates 20 --rounds 20

`rank_many` is shown with and without `dedupe`: without, every candidate is sent for each user. The
server runs on the same machine; the ways take turns. Figures are of all users together.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import RankingClient
from colcast.loadtest.formats import NO_STORES
from colcast.loadtest.metrics import publishing
from colcast.loadtest.recording import Recording
from colcast.loadtest.variants import CPU, P50, Variant, asking, measure_variants, other
from colcast.loadtest.zoo_models import exported
from colcast.server import ServerProcess
from colcast.zoo.catalog import Catalog
from colcast.zoo.wide import WIDE

from ..server.metrics_page import Metrics

MODEL = "wide"
COUNTED = tuple(other(name, ",.0f") for name in ("bytes", "items", "users"))
COLUMNS = (*COUNTED, CPU, other("client CPU ms"), P50)
Group = tuple[list[dict[str, Any]], dict[str, Any]]


def alone(client: RankingClient, group: Group) -> int:
    """One request per user."""
    users, items = group
    return sum(len(client.rank(user, items).scores) for user in users)


def together(client: RankingClient, group: Group) -> int:
    """One request for all."""
    users, items = group
    return sum(len(one.scores) for one in client.rank_many([(user, items) for user in users]))


WAYS: tuple[tuple[str, Callable[[RankingClient, Group], int], Any], ...] = (
    ("rank: a request per user", alone, "auto"),
    ("rank_many, dedupe off: each candidate for each user", together, "off"),
    ("rank_many: each candidate once", together, "auto"),
)


def group_of(users: int, candidates: int, seed: int) -> Group:
    """Users, and the candidates that all of them have; the same for the same seed."""
    found = Catalog(WIDE, "user", users, seed).columns(np.arange(users))
    rows = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
    return rows, Catalog(WIDE, "item", candidates, seed + 1).columns(np.arange(candidates))


def counted(server: ServerProcess) -> dict[str, float]:
    """What the server has read and computed so far."""
    samples = Metrics(server).samples

    def total(name: str, **labels: str) -> float:
        found = [s for s in samples if s.name == name and labels.items() <= s.labels.items()]
        return sum(sample.value for sample in found)

    return {
        "bytes": total(":colcast:request_bytes_sum"),
        "items": total(":colcast:states_computed_total", store="item"),
        "users": total(":colcast:states_computed_total", store="user"),
    }


def variant(
    way: tuple[str, Callable[..., int], Any], server: ServerProcess, made: Sequence[Group]
) -> Variant:
    """Ranks a group in a way; a round's is the same for all."""
    title, ask, dedupe = way

    def turn(number: int) -> Recording:
        group = made[max(number, 0)]
        with RankingClient(server.target, MODEL, timeout_seconds=60, dedupe=dedupe) as client:
            client.schema()
            before, own = counted(server), time.process_time()
            once = asking(title, lambda: ask(client, group), 1, server.pid)
            recording = once.turn(number)
            own = time.process_time() - own
        after = counted(server)
        recording.others = {name: after[name] - value for name, value in before.items()}
        recording.others["client CPU ms"] = 1000 * own
        return recording

    return Variant(title, turn)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Rank shared candidates for several users.")
    parser.add_argument("--users", type=int, default=15)
    parser.add_argument("--candidates", type=int, default=70)
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    made = [group_of(options.users, options.candidates, 2 * n) for n in range(options.rounds)]
    with tempfile.TemporaryDirectory() as folder:
        flags = [*publishing(Path(folder)), *NO_STORES]
        with ServerProcess(MODEL, exported(MODEL), flags) as server:
            head = f"{options.users} users, N = {options.candidates}"
            measure_variants(
                [(head, [variant(way, server, made) for way in WAYS])], options.rounds, COLUMNS
            )


if __name__ == "__main__":
    main()
