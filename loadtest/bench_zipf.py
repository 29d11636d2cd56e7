"""Hit rates of the state caches of several sizes: users and items of `wide`, drawn by Zipf."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from colcast.client import RankingClient
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Request
from colcast.loadtest.formats import RequestData, encode
from colcast.loadtest.metrics import Counts, page_of, publishing, state_counts
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.recording import Recording
from colcast.loadtest.server_variants import servers
from colcast.loadtest.variants import CPU, Variant, answered, other
from colcast.server import ServerProcess

MODEL, ROUNDS = "wide", 6
_MIB = 1 << 20
_CLIENTS, _WARM_UP_CALLS = 4, 40
_GREW = "resident memory grew, MiB"
COLUMNS = (
    CPU,
    *(other(f"{store}s found", ".1%", over=np.mean) for store in ("user", "item")),
    *(other(f"{store}s' states, MiB", ".1f", over=max) for store in ("user", "item")),
    other(_GREW, ".1f", over=max),
)


@dataclass(frozen=True)
class Population:
    """Who asks for what: `users` and `items` drawn by Zipf, `candidates` per request.

    `cache_mib` are the values of --user_state_bytes and of --item_state_bytes, each; 0: none.
    """

    users: int = 20_000
    items: int = 100_000
    exponent: float = 1.0
    candidates: int = 100
    requests: int = 6_000
    cache_mib: tuple[int, ...] = (0, 16, 64, 256)

    def __str__(self) -> str:
        """What tables are about."""
        return (
            f"{MODEL}: {self.requests:,} requests of {self.candidates} candidates, "
            f"{self.users:,} users and {self.items:,} items by Zipf with exponent "
            f"{self.exponent:g}; the second half is measured"
        )


def hit_rates(base_path: Path, population: Population) -> Iterator[tuple[str, list[Variant]]]:
    """The same requests to a server per size of the caches.

    Raises:
      LookupError: the server does not publish its caches' counts.
    """
    with TemporaryDirectory() as folder, ExitStack() as connected:
        monitoring = publishing(Path(folder))
        flags = [
            [*monitoring, *(f"--{side}_state_bytes={mib * _MIB}" for side in ("user", "item"))]
            for mib in population.cache_mib
        ]
        with servers(MODEL, base_path, *flags) as running:
            with RankingClient(running[0].target, MODEL) as client:
                requests = [encode(client, "late", one) for one in _drawn(population)]
            yield (
                "users and items by Zipf",
                [
                    Variant(
                        f"{mib} MiB each" if mib else "no state caches",
                        _Caches(server, requests, connected).turn,
                    )
                    for mib, server in zip(population.cache_mib, running, strict=True)
                ],
            )


class _Caches:
    """A server whose caches are filled by the first half of the requests."""

    def __init__(
        self, server: ServerProcess, requests: list[Request], connected: ExitStack
    ) -> None:
        self._loop = connected.enter_context(ClosedLoop(server.target, _CLIENTS))
        self._loop.run(requests, calls=_WARM_UP_CALLS)
        self._requests, self._page = requests, page_of(server.rest_target)
        self._meter = ProcessMeter(server.pid)
        self._memory = self._meter.memory_bytes()

    def turn(self, number: int) -> Recording:
        """The first half, and then a sixth of the second at a time."""
        half = len(self._requests) // 2
        size = half // ROUNDS
        start = half + number * size
        part = self._requests[:half] if number < 0 else self._requests[start : start + size]
        before = state_counts(self._page)
        recording = answered(self._loop.run(part, calls=len(part), meter=self._meter))
        after = state_counts(self._page)
        for store in ("user", "item"):
            recording.others[f"{store}s found"] = _hits(store, before, after)
            recording.others[f"{store}s' states, MiB"] = after[store, "state_bytes"] / _MIB
        recording.others[_GREW] = (self._meter.memory_bytes() - self._memory) / _MIB
        return recording


def _drawn(population: Population) -> Iterator[RequestData]:
    from colcast.zoo.catalog import Catalog, Zipf
    from colcast.zoo.wide import WIDE

    users = Catalog(WIDE, "user", population.users, seed=1)
    items = Catalog(WIDE, "item", population.items, seed=2)
    draws = zip(
        Zipf(population.users, population.exponent).draws(1, seed=3),
        Zipf(population.items, population.exponent).draws(population.candidates, seed=4),
        strict=False,
    )
    for user, candidates in islice(draws, population.requests):
        row = {name: values[0] for name, values in users.columns(user).items()}
        yield RequestData(len(candidates), row, items.columns(candidates))


def _hits(store: str, before: Counts, after: Counts) -> float:
    """The share of lookups that found a state; rows nobody looked for were not found."""
    found, computed, not_looked_for = (
        after[store, f"states_{what}_total"] - before[store, f"states_{what}_total"]
        for what in ("found", "computed", "not_looked_for")
    )
    rows = found + computed + not_looked_for
    return found / rows if rows else float("nan")
