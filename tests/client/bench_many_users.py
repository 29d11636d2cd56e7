"""50 users and the same 10,000 candidates from a DataFrame: seconds until every ranking is there.

    python -m tests.client.bench_many_users
    python -m tests.client.bench_many_users --model movielens --candidates 1500

The server runs on the same machine. CPU is the client's own.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pandas as pd
from colcast.client import AsyncRankingClient, RankingClient
from colcast.server import ServerProcess
from colcast.zoo.columnar import columnar
from colcast.zoo.registry import MODELS

Clients = tuple[str, dict[str, Any]]


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


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Rank the same candidates for many users.")
    parser.add_argument("--model", default="wide", choices=MODELS)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--timeout_seconds", type=float, default=60)
    options = parser.parse_args()
    model = MODELS[options.model]
    requests = model.requests([options.candidates, *[1] * options.users], 0)
    frame = pd.DataFrame(requests[0][1])
    users = [user for user, _ in requests[1:]]
    exported = columnar(model.saved_model(), late=True)
    with ServerProcess(options.model, exported) as server:
        settings = {"model": options.model, "timeout_seconds": options.timeout_seconds}
        print(f"{options.users} users, {options.candidates} candidates, {options.model}")
        print(f"{'':<72}{'s':>8}{'client CPU':>12}")
        for way in (one_by_one, prepared, prepared_for_many, in_flight, prepared_in_flight):
            wall, cpu = time.perf_counter(), time.process_time()
            scored = way((server.target, settings), users, frame)
            assert scored == options.users * options.candidates
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            print(f"  {(way.__doc__ or '').rstrip('.'):<70}{wall:>8.2f}{cpu:>12.2f}", flush=True)


if __name__ == "__main__":
    main()
