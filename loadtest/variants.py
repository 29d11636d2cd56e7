"""The same requests to one model on servers started with different flags, in turn."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from colcast.client import RankingClient
from colcast.loadtest.charts import Panel, grouped_bars, standalone
from colcast.loadtest.connection import Request
from colcast.loadtest.correctness import outputs_difference, reference_answers
from colcast.loadtest.figures import milliseconds, share
from colcast.loadtest.formats import RequestData, encode
from colcast.loadtest.process import Meter, ProcessMeter
from colcast.loadtest.run import Options, with_clients
from colcast.loadtest.series import Series, Target
from colcast.server import ServerProcess
from rich.table import Table

_HELD_BACK, _REPEATED = 2, 10
# A server that finds hardly anything again stops looking after some thousand rows: by then it has.
_WARM_UP_ROWS, _WARM_UP_CALLS = 6000, 24


@dataclass(frozen=True)
class Variant:
    """One line of a table: what is sent to a server with which flags.

    Attributes:
      title: for tables.
      format: a name in `FORMATS`.
      flags: of the server, one of its own per variant.
      known: whether the same requests come again and again; otherwise every request is of a user
        and of items that the server has not seen.
    """

    title: str
    format: str
    flags: tuple[str, ...] = ()
    known: bool = False


@dataclass(frozen=True)
class Row:
    """A variant at one number of candidates.

    Attributes:
      candidates: N.
      variant: its title.
      cpu_ms: server CPU per request: user and system time of the process.
      p50_ms: median latency with as many clients as the measurement had.
      bytes: per request.
      calls: how many were measured.
      errors: how many of them failed.
      difference: the largest difference of a score from the first variant's.
    """

    candidates: int
    variant: str
    cpu_ms: float
    p50_ms: float
    bytes: float
    calls: int
    errors: int
    difference: float


@dataclass(frozen=True)
class Effort:
    """`rounds` of `calls` per variant, in turn, with `clients` that wait for their answers."""

    clients: int = 4
    rounds: int = 5
    calls: int = 12

    def distinct(self, size: int) -> int:
        """How many different requests of `size` candidates a variant needs that repeats none."""
        return warm_up_calls(size) + self.rounds * self.calls + _HELD_BACK


def warm_up_calls(size: int) -> int:
    """How many requests of `size` candidates warm a server up."""
    return max(_WARM_UP_CALLS, _WARM_UP_ROWS // size)


@contextmanager
def servers(
    model: str, base_path: Path, variants: Sequence[Variant]
) -> Iterator[list[ServerProcess]]:
    """A server per variant."""
    with ExitStack() as started:
        yield [
            started.enter_context(ServerProcess(model, base_path, flags=list(variant.flags)))
            for variant in variants
        ]


def compare_variants(
    model: str,
    base_path: Path,
    variants: Sequence[Variant],
    requests: Callable[[int, int], Sequence[RequestData]],
    sizes: Sequence[int],
    effort: Effort,
    progress: Callable[[], None] = lambda: None,
) -> list[Row]:
    """Measures every variant at every size; the variants of one size take turns.

    Args:
      model: the model's name.
      base_path: of its versions.
      variants: the others' scores are compared with the first one's.
      requests: (N, count) -> as many requests with N candidates each, all different.
      sizes: N.
      effort: how much to send.
      progress: called `len(sizes) * len(variants) * effort.rounds` times.

    Raises:
      RuntimeError: a server refuses a request.
    """
    rows: list[Row] = []
    with servers(model, base_path, variants) as running:
        meters: dict[str, Meter] = {it.target: ProcessMeter(it.pid) for it in running}
        for size in sizes:
            data = requests(size, effort.distinct(size))
            with RankingClient(running[0].target, model) as client:
                encoded = {
                    name: [encode(client, name, one) for one in data]
                    for name in dict.fromkeys(variant.format for variant in variants)
                }
            rows += _at_size(size, variants, running, encoded, meters, effort, progress)
    return rows


def _at_size(
    size: int,
    variants: Sequence[Variant],
    running: Sequence[ServerProcess],
    encoded: Mapping[str, Sequence[Request]],
    meters: Mapping[str, Meter],
    effort: Effort,
    progress: Callable[[], None],
) -> list[Row]:
    warm_up = warm_up_calls(size)
    held_back = {name: requests[:_HELD_BACK] for name, requests in encoded.items()}
    by_address = {it.target: variant for it, variant in zip(running, variants, strict=True)}
    series = [
        Series(Target(variant.title, it.target), variant.format, encoded[variant.format])
        for it, variant in zip(running, variants, strict=True)
    ]

    def window(one: Series, number: int) -> Sequence[Request]:
        """What a variant sends in a window; window -1 warms up."""
        rest = one.requests[_HELD_BACK:]
        if by_address[one.target.address].known:
            return rest[:_REPEATED]
        if number < 0:
            return rest[:warm_up]
        first = warm_up + number * effort.calls
        return rest[first : first + effort.calls]

    options = Options(windows=effort.rounds, window_calls=effort.calls, keep_every=0)
    results = with_clients(
        series,
        effort.clients,
        meters,
        options,
        lambda *_: progress(),
        window_requests=window,
        warm_up_calls=warm_up,
    )
    answers = [reference_answers(it.target.address, held_back[it.format]) for it in series]
    return [
        Row(
            candidates=size,
            variant=variant.title,
            cpu_ms=result.recording.server_cpu_ms,
            p50_ms=result.recording.latency_ms(50),
            bytes=result.recording.bytes_per_request,
            calls=len(result.recording.calls),
            errors=result.recording.errors,
            difference=max(map(outputs_difference, answers[0], own)),
        )
        for variant, result, own in zip(variants, results, answers, strict=True)
    ]


def zoo_rows(model: str) -> Callable[[int, int], Sequence[RequestData]]:
    """(N, count) -> requests of a model of the zoo, all different, as rows."""
    from colcast.zoo.registry import MODELS

    def requests(size: int, count: int) -> list[RequestData]:
        found = MODELS[model].requests([size] * count, size)  # other users and items at every size
        return [RequestData(len(items), user, items) for user, items in islice(found, count)]

    return requests


def variants_table(rows: Sequence[Row], title: str) -> Table:
    """For a terminal: CPU per request and its share of the first variant's."""
    table = Table(title=title, title_justify="left")
    for header in ("N", "", "CPU ms", "share", "p50 ms", "bytes", "calls", "errors", "diff"):
        table.add_column(header, justify="left" if not header else "right")
    for row in rows:
        table.add_row(*_cells(row, _first(rows, row)), end_section=row is rows[-1])
    return table


def variants_markdown(rows: Sequence[Row]) -> str:
    """For documents: a line per size, CPU and share per variant."""
    titles = list(dict.fromkeys(row.variant for row in rows))
    heads = ["N", f"{titles[0]}, CPU ms"]
    heads += [f"{title}, {what}" for title in titles[1:] for what in ("CPU ms", "share")]
    lines = [heads, ["---:"] * len(heads)]
    for size in dict.fromkeys(row.candidates for row in rows):
        of_size = [row for row in rows if row.candidates == size]
        cells = [f"{size}", milliseconds(of_size[0].cpu_ms)]
        for row in of_size[1:]:
            cells += [milliseconds(row.cpu_ms), share(row.cpu_ms, of_size[0].cpu_ms)]
        lines.append(cells)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def variants_chart(models: Mapping[str, Sequence[Row]]) -> str:
    """An SVG file: CPU per request by variant, the first one's being 100 %, a panel per model.

    Args:
      models: name -> its rows, every model with variants of the same titles.
    """
    titles = list(dict.fromkeys(row.variant for rows in models.values() for row in rows))
    panels = []
    for model, rows in models.items():
        sizes = list(dict.fromkeys(row.candidates for row in rows))
        cpu = [[row.cpu_ms for row in rows if row.candidates == size] for size in sizes]
        panels.append(
            Panel(
                title=model,
                groups=[f"N = {size}" for size in sizes],
                values=[[each / of_size[0] for each in of_size] for of_size in cpu],
                texts=[[milliseconds(each) for each in of_size] for of_size in cpu],
            )
        )
    heading = f"Server CPU per request: {titles[0]} is 100 %, milliseconds above the bars"
    return standalone(grouped_bars(panels, titles, heading))


def _first(rows: Sequence[Row], of: Row) -> Row:
    return next(row for row in rows if row.candidates == of.candidates)


def _cells(row: Row, first: Row) -> list[str]:
    return [
        f"{row.candidates}" if row is first else "",
        row.variant,
        milliseconds(row.cpu_ms),
        share(row.cpu_ms, first.cpu_ms),
        milliseconds(row.p50_ms),
        f"{row.bytes:,.0f}",
        f"{row.calls}",
        f"[red]{row.errors}" if row.errors else "0",
        f"{row.difference:.1g}",
    ]
