"""50 users and the same 10,000 candidates from a DataFrame: how long until all are ranked.

    python -m tests.client.bench_many_users
    python -m tests.client.bench_many_users --model movielens --candidates 1500

The server runs on the same machine. CPU is the client's own.
"""

import argparse
import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
from colcast.client import AsyncRankingClient, RankingClient
from colcast.loadtest.variants import CPU, P50, asking, measure_variants
from colcast.loadtest.zoo_models import exported
from colcast.server import ServerProcess
from colcast.zoo.registry import MODELS

Clients = tuple[str, dict[str, Any]]
WALL = replace(P50, heading="ms", compared=True)


def blocking(clients: Clients, users: list[Any], frame: Any, prepared: bool) -> int:
    """A request per user, one after the other."""
    with RankingClient(clients[0], **clients[1]) as client:
        items = client.prepare(frame) if prepared else frame
        return sum(len(client.rank(user, items).scores) for user in users)


def for_many(clients: Clients, users: list[Any], frame: Any) -> int:
    """`rank_many`, candidates prepared."""
    with RankingClient(clients[0], **clients[1]) as client:
        items = client.prepare(frame)
        return sum(len(one.scores) for one in client.rank_many([(u, items) for u in users]))


async def in_flight(clients: Clients, users: list[Any], frame: Any, prepared: bool) -> int:
    """All users in flight."""
    async with AsyncRankingClient(clients[0], **clients[1]) as client:
        items = await client.prepare(frame) if prepared else frame
        found = await asyncio.gather(*[client.rank(user, items) for user in users])
    return sum(len(one.scores) for one in found)


WAYS: dict[str, Callable[[Clients, list[Any], Any], int]] = {
    "blocking, the DataFrame each time": lambda *given: blocking(*given, prepared=False),
    "blocking, prepared": lambda *given: blocking(*given, prepared=True),
    "rank_many, prepared": for_many,
    "asyncio, the DataFrame each time": lambda *it: asyncio.run(in_flight(*it, prepared=False)),
    "asyncio, prepared": lambda *given: asyncio.run(in_flight(*given, prepared=True)),
}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Rank the same candidates for many users.")
    parser.add_argument("--model", default="wide", choices=MODELS)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--timeout_seconds", type=float, default=60)
    options = parser.parse_args()
    sizes = [options.candidates, *[1] * options.users]
    (_, rows), *others = MODELS[options.model].requests(sizes, 0)
    frame, users = pd.DataFrame(rows), [user for user, _ in others]
    settings = {"model": options.model, "timeout_seconds": options.timeout_seconds}
    with ServerProcess(options.model, exported(options.model)) as server:

        def ranked(way: Callable[[Clients, list[Any], Any], int]) -> None:
            scored = way((server.target, settings), users, frame)
            assert scored == options.users * options.candidates

        variants = [
            asking(title, partial(ranked, way), 1, os.getpid()) for title, way in WAYS.items()
        ]
        head = f"{options.users} users, N = {options.candidates}"
        measure_variants([(head, variants)], 1, [WALL, replace(CPU, heading="client CPU ms")])


if __name__ == "__main__":
    main()
