"""Users who share candidates: how long until all are ranked, and what it costs client and server.

    python -m tests.client.bench_many_users
    python -m tests.client.bench_many_users --model movielens --candidates 1500
    python -m tests.client.bench_many_users --users 15 --candidates 70 --rounds 12

50 users and 10,000 candidates of a DataFrame, with nothing cached. `rank_many` is shown with and
without `dedupe`: without, every candidate is sent for each user. The server runs on the same
machine; the ways take turns. Figures are of all users together.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from colcast.client import AsyncRankingClient, RankingClient
from colcast.loadtest.formats import NO_STATES
from colcast.loadtest.metrics import publishing
from colcast.loadtest.recording import Recording
from colcast.loadtest.variants import CPU, P50, Variant, asking, measure_variants, other
from colcast.loadtest.zoo_models import exported
from colcast.server import ServerProcess
from colcast.zoo.registry import MODELS

from ..server.metrics_page import Metrics

Settings = dict[str, Any]
Group = tuple[list[Any], pd.DataFrame]  # users, and the candidates that all of them have
COUNTED = tuple(other(name, ",.0f") for name in ("bytes", "items", "users"))
WALL = replace(P50, heading="ms", compared=True)
COLUMNS = (*COUNTED, CPU, other("client CPU ms"), WALL)


def blocking(target: str, settings: Settings, group: Group, prepared: bool) -> int:
    """A request per user, one after the other."""
    users, frame = group
    with RankingClient(target, **settings) as client:
        items = client.prepare(frame) if prepared else frame
        return sum(len(client.rank(user, items).scores) for user in users)


def together(target: str, settings: Settings, group: Group, dedupe: Any) -> int:
    """`rank_many`, candidates prepared where each is sent once."""
    users, frame = group
    with RankingClient(target, **settings, dedupe=dedupe) as client:
        items = client.prepare(frame) if dedupe == "auto" else frame
        return sum(len(one.scores) for one in client.rank_many([(u, items) for u in users]))


async def in_flight(target: str, settings: Settings, group: Group, prepared: bool) -> int:
    """All users in flight."""
    users, frame = group
    async with AsyncRankingClient(target, **settings) as client:
        items = await client.prepare(frame) if prepared else frame
        found = await asyncio.gather(*[client.rank(user, items) for user in users])
    return sum(len(one.scores) for one in found)


Way = Callable[[str, Settings, Group], int]
WAYS: dict[str, Way] = {
    "rank, the DataFrame each time": partial(blocking, prepared=False),
    "rank, prepared": partial(blocking, prepared=True),
    "rank_many, dedupe off": partial(together, dedupe="off"),
    "rank_many": partial(together, dedupe="auto"),
    "asyncio, the DataFrame each time": lambda *it: asyncio.run(in_flight(*it, prepared=False)),
    "asyncio, prepared": lambda *it: asyncio.run(in_flight(*it, prepared=True)),
}


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
    title: str, way: Way, server: ServerProcess, settings: Settings, groups: Sequence[Group]
) -> Variant:
    """Ranks a group in a way; a round's is the same for all."""

    def turn(number: int) -> Recording:
        group = groups[max(number, 0)]

        def ranked() -> None:
            assert way(server.target, settings, group) == len(group[0]) * len(group[1])

        before, own = counted(server), time.process_time()
        recording: Recording = asking(title, ranked, 1, server.pid).turn(number)
        own, after = time.process_time() - own, counted(server)
        recording.others = {name: after[name] - value for name, value in before.items()}
        recording.others["client CPU ms"] = 1000 * own
        return recording

    return Variant(title, turn)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Rank the same candidates for many users.")
    parser.add_argument("--model", default="wide", choices=MODELS)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--timeout_seconds", type=float, default=60)
    options = parser.parse_args()
    groups = []
    for number in range(options.rounds):
        sizes = [options.candidates, *[1] * options.users]
        (_, items), *others = MODELS[options.model].requests(sizes, number)
        groups.append(([user for user, _ in others], pd.DataFrame(items)))
    settings = {"model": options.model, "timeout_seconds": options.timeout_seconds}
    with tempfile.TemporaryDirectory() as folder:
        flags = [*publishing(Path(folder)), *NO_STATES]
        with ServerProcess(options.model, exported(options.model), flags) as server:
            head = f"{options.users} users, N = {options.candidates}"
            variants = [variant(*way, server, settings, groups) for way in WAYS.items()]
            measure_variants([(head, variants)], options.rounds, COLUMNS)


if __name__ == "__main__":
    main()
