"""50 users and the same 10,000 candidates from a DataFrame: how long until all are ranked.

    python -m tests.client.bench_many_users
    python -m tests.client.bench_many_users --model movielens --candidates 1500

The server runs on the same machine. CPU is the client's own.
"""

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
from colcast.client import AsyncRankingClient, RankingClient
from colcast.loadtest.variants import CPU, P50, asking, compare
from colcast.loadtest.zoo_models import exported
from colcast.server import ServerProcess
from colcast.zoo.registry import MODELS

Clients = tuple[str, dict[str, Any]]
WALL = replace(P50, heading="ms", compared=True)


def one_by_one(clients: Clients, users: list[Any], frame: Any) -> int:
    """The blocking client, given the DataFrame each time."""
    with RankingClient(clients[0], **clients[1]) as client:
        return sum(len(client.rank(user, frame).scores) for user in users)


def prepared(clients: Clients, users: list[Any], frame: Any) -> int:
    """The blocking client, candidates prepared."""
    with RankingClient(clients[0], **clients[1]) as client:
        items = client.prepare(frame)
        return sum(len(client.rank(user, items).scores) for user in users)


def prepared_for_many(clients: Clients, users: list[Any], frame: Any) -> int:
    """`rank_many`, candidates prepared."""
    with RankingClient(clients[0], **clients[1]) as client:
        items = client.prepare(frame)
        return sum(len(one.scores) for one in client.rank_many([(u, items) for u in users]))


def in_flight(clients: Clients, users: list[Any], frame: Any) -> int:
    """Asyncio with all users in flight, given the DataFrame each time."""
    return asyncio.run(_in_flight(clients, users, frame, _as_it_is))


def prepared_in_flight(clients: Clients, users: list[Any], frame: Any) -> int:
    """Asyncio with all users in flight, candidates prepared."""
    return asyncio.run(_in_flight(clients, users, frame, AsyncRankingClient.prepare))


async def _as_it_is(_: AsyncRankingClient, frame: Any) -> Any:
    return frame


async def _in_flight(
    clients: Clients,
    users: list[Any],
    frame: Any,
    prepare: Callable[[AsyncRankingClient, Any], Awaitable[Any]],
) -> int:
    async with AsyncRankingClient(clients[0], **clients[1]) as client:
        items = await prepare(client, frame)
        found = await asyncio.gather(*[client.rank(user, items) for user in users])
    return sum(len(one.scores) for one in found)


WAYS = {
    "blocking, given the DataFrame each time": one_by_one,
    "blocking, candidates prepared": prepared,
    "rank_many, candidates prepared": prepared_for_many,
    "asyncio, given the DataFrame each time": in_flight,
    "asyncio, candidates prepared": prepared_in_flight,
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
        compare([(head, variants)], 1, [WALL, replace(CPU, heading="client CPU ms")])


if __name__ == "__main__":
    main()
