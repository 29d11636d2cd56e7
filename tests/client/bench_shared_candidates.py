"""15 users who share 70 candidates, nothing cached: a request each, and `rank_many`.

    python -m tests.client.bench_shared_candidates
    python -m tests.client.bench_shared_candidates --users 50 --candidates 20 --rounds 20

`rank_many` is shown with and without `dedupe`: without, every candidate is sent for each user. The
server runs on the same machine; the ways take turns. Figures are of all users together.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import RankingClient
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.turns import in_turn
from colcast.server import ServerProcess
from colcast.zoo.catalog import Catalog
from colcast.zoo.columnar import columnar
from colcast.zoo.registry import MODELS
from colcast.zoo.wide import WIDE

from ..server.metrics_page import Metrics

MODEL = "wide"
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


def figures(server: ServerProcess) -> dict[str, float]:
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


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Rank shared candidates for several users.")
    parser.add_argument("--users", type=int, default=15)
    parser.add_argument("--candidates", type=int, default=70)
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    groups = [group_of(options.users, options.candidates, 2 * n) for n in range(options.rounds)]
    exported = columnar(MODELS[MODEL].saved_model(), late=True)
    with tempfile.NamedTemporaryFile("w", suffix=".config") as config:
        Path(config.name).write_text("prometheus_config { enable: true }")
        flags = ["--rest_api_port=-1", f"--monitoring_config_file={config.name}"]
        flags += ["--user_state_bytes=0", "--item_state_bytes=0"]
        with ServerProcess(MODEL, exported, flags) as server:
            measure(server, groups, options.users * options.candidates)


def measure(server: ServerProcess, groups: list[Group], scores: int) -> None:
    """Ranks each group in every way."""
    meter = ProcessMeter(server.pid)

    def one(way: int, number: int) -> dict[str, float]:
        _, ask, dedupe = WAYS[way]
        with RankingClient(server.target, MODEL, timeout_seconds=60, dedupe=dedupe) as client:
            client.schema()
            before, cpu = figures(server), meter.cpu_seconds()
            own, wall = time.process_time(), time.perf_counter()
            assert ask(client, groups[number]) == scores
            wall, own = time.perf_counter() - wall, time.process_time() - own
            cpu = meter.cpu_seconds() - cpu
        after = figures(server)
        counted = {name: after[name] - value for name, value in before.items()}
        return {**counted, "server": 1000 * cpu, "client": 1000 * own, "wall": 1000 * wall}

    for way in range(len(WAYS)):
        one(way, 0)
    found = in_turn(range(len(WAYS)), one, len(groups))
    names = ("bytes", "items", "users", "server", "client", "wall")
    print(f"{scores} scores, median of {len(groups)}; server CPU, client CPU and wall in ms")
    print(f"{'':<54}" + "".join(f"{name:>11}" for name in names))
    for (label, _, _), rounds in zip(WAYS, found, strict=True):
        medians = [float(np.median([each[name] for each in rounds])) for name in names]
        digits = (0, 0, 0, 2, 2, 2)
        print(
            f"  {label:<52}"
            + "".join(f"{m:>11,.{d}f}" for m, d in zip(medians, digits, strict=True))
        )


if __name__ == "__main__":
    main()
