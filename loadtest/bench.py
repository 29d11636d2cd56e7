"""End to end: models of the zoo behind the native server, formats side by side in one run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from colcast.loadtest import bench_batching as batching
from colcast.loadtest import bench_users, bench_zipf, overhead
from colcast.loadtest.bench_servers import STATES, TRANSCODING
from colcast.loadtest.bench_users import several_users
from colcast.loadtest.bench_zipf import Population, hit_rates
from colcast.loadtest.formats import FORMATS_ALONE
from colcast.loadtest.output import finite
from colcast.loadtest.overhead import engine_benchmark, overheads
from colcast.loadtest.progress import progress_bar
from colcast.loadtest.report import machine
from colcast.loadtest.server_variants import Effort, ServerVariant, compare_servers
from colcast.loadtest.share_chart import Cost, share_chart
from colcast.loadtest.side_by_side import Effort as FormatsEffort
from colcast.loadtest.side_by_side import Line as FormatLine
from colcast.loadtest.side_by_side import format_costs, side_by_side
from colcast.loadtest.tables import (
    markdown_head,
    markdown_rows,
    side_by_side_legend,
    side_by_side_table,
)
from colcast.loadtest.traffic import zoo_requests
from colcast.loadtest.variants import CPU, Line, measure_variants
from colcast.loadtest.zoo_models import exported, zoo_rows
from colcast.server import ServerProcess
from rich.console import Console

_DISTINCT_REQUESTS = 10
Figures = dict[str, Any]  # what is written as JSON


def bench_all(args: SimpleNamespace, console: Console) -> Figures:
    """All models asked for, one after the other; writes their figures, a table and a chart."""
    engine_benchmark()  # missed now, not after the first measurement
    table = [markdown_head(args.formats)]
    measured, figures = {}, {}
    for model in args.models:
        lines, added = bench(model, args, console)
        measures = {"lines": [line.as_json() for line in lines], "overhead": added}
        figures[model] = _write(model, {"model": model, **measures}, args.output)
        table += markdown_rows(model, lines)
        measured[model] = lines
    (args.output / "table.md").write_text("\n".join(table) + "\n")
    (args.output / "shares.svg").write_text(
        share_chart({model: format_costs(lines) for model, lines in measured.items()})
    )
    files = ", ".join(f"{args.output}/{name}" for name in ("*.json", "table.md", "shares.svg"))
    console.print(f"Figures: {files}", highlight=False)
    return figures


def bench(
    model: str, args: SimpleNamespace, console: Console
) -> tuple[list[FormatLine], list[Line]]:
    """One model of the zoo in all formats at all sizes, and what the server adds to it.

    Raises:
      ValueError: no such model or format, or a size the model has no requests of.
    """
    from colcast.zoo.cache import VERSION

    formats = args.formats
    with console.status(f"{model}: making the model and its requests"):
        base_path = exported(model, late="late" in formats)
        traffic = {size: zoo_requests(model, [size] * _DISTINCT_REQUESTS, 0) for size in args.sizes}
    effort = FormatsEffort(args.clients, args.rounds, args.calls)
    steps = effort.steps(len(args.sizes), len(formats))
    flags = [*FORMATS_ALONE, *args.server_flag]
    with ServerProcess(model, base_path, flags=flags) as server:
        with progress_bar(console, f"{model}: formats in turn", steps) as advance:
            lines = side_by_side(
                server.target,
                model,
                traffic,
                formats,
                pid=server.pid,
                effort=effort,
                progress=advance,
            )
        console.print(side_by_side_table(lines, f"{model}, {machine()}"))
        console.print(side_by_side_legend(lines, args.clients), highlight=False)
        console.print("\nCPU per request with one client: the graph alone, and what a server adds")
        graph, pid = base_path / VERSION, server.pid
        added = overheads(server.target, model, graph, traffic, formats, pid)
        return lines, measure_variants(added, overhead.ROUNDS, overhead.COLUMNS, _Teller(console))


def bench_batching(args: SimpleNamespace, console: Console) -> Figures:
    """Requests that run together, and split; scores compared."""
    base_path, tell = exported("wide"), _Teller(console)
    tell(machine())
    lines = measure_variants(batching.groups(base_path), args.rounds, batching.COLUMNS, tell)
    scores = batching.scores_differ(base_path)
    for what, figures in scores.items():
        tell(f"{what}: {figures}")
    return _write_part("batching", {"lines": lines, **scores}, tell, {}, args.output)


def bench_states(args: SimpleNamespace, console: Console) -> Figures:
    """Users and items cached and not, hit rates, several users in one request."""
    base_path, tell = exported("wide"), _Teller(console)
    tell(machine())
    cached = _servers_compared("wide", base_path, STATES, args, tell)
    users = measure_variants(
        several_users(base_path), bench_users.ROUNDS, bench_users.COLUMNS, tell
    )
    population = Population(requests=args.zipf_requests)
    tell(f"\n{population}")
    zipf = measure_variants(
        hit_rates(base_path, population), bench_zipf.ROUNDS, bench_zipf.COLUMNS, tell
    )
    charts = {"states": {"wide": _costs(cached)}, "zipf": {"wide": _costs(zipf)}}
    figures = {"known": cached, "several_users": users, "zipf": zipf}
    return _write_part("states", figures, tell, charts, args.output)


def bench_transcoding(args: SimpleNamespace, console: Console) -> Figures:
    """tf.Examples parsed by TensorFlow, and read into columns by the server."""
    tell = _Teller(console)
    tell(machine())
    found = {
        model: _servers_compared(model, exported(model), variants, args, tell)
        for model, variants in TRANSCODING.items()
    }
    charts = {"transcoding": {model: _costs(lines) for model, lines in found.items()}}
    return _write_part("transcoding", found, tell, charts, args.output)


class _Teller:
    """Prints lines, and keeps them as a document."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.document = ""

    def __call__(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)
        self.document += f"{line}\n"


def _servers_compared(
    model: str,
    base_path: Path,
    variants: Sequence[ServerVariant],
    args: SimpleNamespace,
    tell: _Teller,
) -> list[Line]:
    effort = Effort(args.clients)
    lines, difference = compare_servers(
        model, base_path, variants, zoo_rows(model), args.sizes, effort, tell
    )
    tell(f"Scores differ from the first line's by at most {difference:.1g}.")
    return lines


def _costs(lines: Sequence[Line]) -> list[Cost]:
    return [(line.group, line.title, line.figures[CPU.heading]) for line in lines]


def _write_part(
    name: str,
    figures: Mapping[str, Any],
    told: _Teller,
    charts: Mapping[str, Mapping[str, Sequence[Cost]]],
    folder: Path,
) -> Figures:
    values = _write(name, figures, folder)
    (folder / f"{name}.md").write_text(told.document)
    for chart, costs in charts.items():
        (folder / f"{chart}.svg").write_text(share_chart(costs))
    written = ", ".join([f"{name}.json", f"{name}.md", *(f"{chart}.svg" for chart in charts)])
    told(f"Figures in {folder}: {written}")
    return values


def _write(name: str, figures: Mapping[str, Any], folder: Path) -> Figures:
    folder.mkdir(parents=True, exist_ok=True)
    values: Figures = finite({"machine": machine(), **figures})
    (folder / f"{name}.json").write_text(json.dumps(values, indent=1, allow_nan=False))
    return values
