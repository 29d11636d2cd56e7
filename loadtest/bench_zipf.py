"""Hit rates of the state stores of several sizes: users and items of `wide`, drawn by Zipf."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from colcast.client import RankingClient
from colcast.loadtest.bench_states import MODEL
from colcast.loadtest.charts import Panel, grouped_bars, standalone
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Request
from colcast.loadtest.figures import milliseconds
from colcast.loadtest.formats import RequestData, encode
from colcast.loadtest.metrics import state_counts
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.progress import progress_bar
from colcast.loadtest.recording import Recording
from colcast.loadtest.turns import in_turn
from colcast.server import ServerProcess
from rich.console import Console
from rich.table import Table

_MIB = 1 << 20
_METRICS_PATH = "/monitoring/prometheus/metrics"
_CLIENTS, _BLOCKS, _WARM_UP_CALLS = 4, 12, 40


@dataclass(frozen=True)
class Population:
    """Who asks for what: `users` and `items` drawn by Zipf, `candidates` per request.

    `store_mib` are the values of --user_state_bytes and of --item_state_bytes, each; 0: no stores.
    """

    users: int = 20_000
    items: int = 100_000
    exponent: float = 1.0
    candidates: int = 100
    requests: int = 6_000
    store_mib: tuple[int, ...] = (0, 16, 64, 256)


@dataclass(frozen=True)
class StoreLine:
    """One size of both stores, over the second half of the requests.

    Attributes:
      store_mib: of each store; 0: no stores.
      user_hits: share of users that were found, 0 to 1; NaN without a store.
      item_hits: share of candidates that were found.
      cpu_ms: server CPU per request.
      user_bytes: what the users' states take at the end.
      item_bytes: what the items' states take at the end.
      grown_bytes: resident memory at the end, less that of the server when it had warmed up.
      requests: how many were measured.
      errors: how many of them failed.
    """

    store_mib: int
    user_hits: float
    item_hits: float
    cpu_ms: float
    user_bytes: float
    item_bytes: float
    grown_bytes: float
    requests: int
    errors: int


def hit_rates(base_path: Path, population: Population, console: Console) -> list[StoreLine]:
    """Sends the same requests to a server per size of the stores, in turn, block by block.

    Raises:
      LookupError: the server does not publish its stores' counts.
    """
    with ExitStack() as started:
        monitoring = Path(started.enter_context(TemporaryDirectory()), "monitoring.config")
        monitoring.write_text("prometheus_config { enable: true }")
        running = [
            started.enter_context(ServerProcess(MODEL, base_path, flags=_flags(mib, monitoring)))
            for mib in population.store_mib
        ]
        with console.status("drawing users and items by Zipf"):
            requests = _requests(running[0].target, population)
        return _measured(population, running, requests, console)


def stores_table(lines: Sequence[StoreLine], population: Population) -> Table:
    """For a terminal."""
    table = Table(title=_title(population), title_justify="left")
    for header in _HEADERS:
        table.add_column(header, justify="right")
    for line in lines:
        table.add_row(*_cells(line))
    return table


def stores_markdown(lines: Sequence[StoreLine], population: Population) -> str:
    """For documents."""
    rows = [_HEADERS, ["---:"] * len(_HEADERS), *map(_cells, lines)]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{_title(population)}:\n\n{table}"


def stores_chart(lines: Sequence[StoreLine], population: Population) -> str:
    """An SVG file: CPU per request by the size of the stores, without them being 100 %."""
    panel = Panel(
        title=f"{MODEL}, {population.candidates} candidates",
        groups=["no stores" if not it.store_mib else f"{it.store_mib} MiB each" for it in lines],
        values=[[it.cpu_ms / lines[0].cpu_ms] for it in lines],
        texts=[[f"{milliseconds(it.cpu_ms)} ms"] for it in lines],
    )
    heading = "Server CPU per request, users and items drawn by Zipf"
    return standalone(grouped_bars([panel], ["CPU per request"], heading))


# Implementation details follow.

_HEADERS = [
    *("each store, MiB", "users found", "items found", "CPU ms"),
    *("users' states, MiB", "items' states, MiB", "resident memory grew, MiB", "errors"),
]


def _title(population: Population) -> str:
    return (
        f"{MODEL}: {population.requests:,} requests of {population.candidates} candidates, "
        f"{population.users:,} users and {population.items:,} items by Zipf with exponent "
        f"{population.exponent:g}; the second half is measured"
    )


Counts = dict[tuple[str, str], float]


def _flags(mib: int, monitoring: Path) -> list[str]:
    stores = [f"--{side}_state_bytes={mib * _MIB}" for side in ("user", "item")]
    return [*stores, "--rest_api_port=-1", f"--monitoring_config_file={monitoring}"]


def _page(server: ServerProcess) -> str:
    return f"http://{server.rest_target}{_METRICS_PATH}"


def _requests(address: str, population: Population) -> list[Request]:
    with RankingClient(address, MODEL) as client:
        return [encode(client, "late", one) for one in _drawn(population)]


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


def _measured(
    population: Population,
    running: Sequence[ServerProcess],
    requests: Sequence[Request],
    console: Console,
) -> list[StoreLine]:
    meters = [ProcessMeter(it.pid) for it in running]
    before: list[Counts] = [{} for _ in running]
    size = len(requests) // _BLOCKS
    with ExitStack() as connected:
        loops = [connected.enter_context(ClosedLoop(it.target, _CLIENTS)) for it in running]
        for loop in loops:
            loop.run(requests[:_WARM_UP_CALLS], calls=_WARM_UP_CALLS)
        memory = [meter.memory_bytes() for meter in meters]

        def block(place: int, number: int) -> Recording:
            if number == _BLOCKS // 2:
                before[place] = state_counts(_page(running[place]))
            advance()
            part = requests[number * size : (number + 1) * size]
            return loops[place].run(part, calls=size, meter=meters[place])

        what = "stores of several sizes, servers in turn"
        with progress_bar(console, what, _BLOCKS * len(running)) as advance:
            recordings = in_turn(range(len(running)), block, _BLOCKS)
    lines = []
    for place, mib in enumerate(population.store_mib):
        total = Recording()
        for recording in recordings[place][_BLOCKS // 2 :]:
            total.extend(recording)
        after = state_counts(_page(running[place]))
        lines.append(
            StoreLine(
                store_mib=mib,
                user_hits=_hits("user", before[place], after),
                item_hits=_hits("item", before[place], after),
                cpu_ms=total.server_cpu_ms,
                user_bytes=after["user", "state_bytes"],
                item_bytes=after["item", "state_bytes"],
                grown_bytes=meters[place].memory_bytes() - memory[place],
                requests=len(total.calls),
                errors=total.errors,
            )
        )
    return lines


def _hits(store: str, before: Counts, after: Counts) -> float:
    """The share of lookups that found a state; rows nobody looked for were not found."""
    found, computed, not_looked_for = (
        after[store, f"states_{what}_total"] - before[store, f"states_{what}_total"]
        for what in ("found", "computed", "not_looked_for")
    )
    rows = found + computed + not_looked_for
    return found / rows if rows else float("nan")


def _cells(line: StoreLine) -> list[str]:
    def percent(value: float) -> str:
        return "-" if value != value else f"{100 * value:.1f} %"

    def mib(value: float) -> str:
        return f"{value / _MIB:.1f}"

    return [
        f"{line.store_mib}" if line.store_mib else "none",
        percent(line.user_hits) if line.store_mib else "-",
        percent(line.item_hits) if line.store_mib else "-",
        milliseconds(line.cpu_ms),
        mib(line.user_bytes),
        mib(line.item_bytes),
        mib(line.grown_bytes),
        f"{line.errors}",
    ]
