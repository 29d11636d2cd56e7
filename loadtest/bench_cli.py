"""The command line of `colcast bench`."""

import json
from types import SimpleNamespace
from typing import Any

import click
from colcast.cli.console import report_console
from colcast.cli.options import Command, Parsed, section
from colcast.loadtest.options import FORMATS, failures_told, output_options

_COUNT = click.IntRange(min=1)
_WHOLE = ("papers", "states", "transcoding", "batching")

_measured = section("What is measured")
_requests = section("Requests")
_effort = section("Effort")


def _sizes(text: str) -> list[int]:
    if not all(size.isdecimal() and int(size) for size in text.split(",")):
        raise ValueError(f"{text!r}: wanted are whole numbers above 0, like 20,100,500")
    return [int(size) for size in text.split(",")]


@click.command(
    cls=Command,
    epilog="""\
\b
Examples:
  colcast bench --models wide,movielens      make bench, make bench-zoo
  colcast bench --states                     make bench-states
  colcast bench --transcoding                make bench-transcoding
  colcast bench --batching""",
)
@_measured(
    "--models",
    type=Parsed(lambda text: text.split(",")),
    default="wide",
    metavar="A,B",
    help="Models of the zoo, each in all formats.",
)
@_measured("--papers", is_flag=True, help="The eight papers' models, each in all formats.")
@_measured("--states", is_flag=True, help="What the server's state caches save, on `wide`.")
@_measured(
    "--transcoding",
    is_flag=True,
    help="tf.Examples read into columns by the server, on `wide` and MovieLens.",
)
@_measured(
    "--batching",
    is_flag=True,
    help="Requests that run together across users, and split, on `wide`.",
)
@_requests(
    "--sizes",
    type=Parsed(_sizes),
    default="20,100,500",
    metavar="A,B",
    help="Candidates per request.",
)
@_requests(
    "--formats",
    type=FORMATS,
    default="example,repeated,columnar,late",
    metavar="A,B",
    help="Compared side by side, see colcast loadtest --help.",
)
@_requests("--clients", type=_COUNT, default=4, metavar="K", help="Clients that wait for answers.")
@_requests(
    "--server-flag",
    multiple=True,
    metavar="--FLAG=VALUE",
    help="A further flag of the server; repeatable.",
)
@_effort("--rounds", type=_COUNT, default=10, metavar="N", help="Of each format, in turn.")
@_effort("--calls", type=_COUNT, default=20, metavar="N", help="Of each format in a round.")
@_effort(
    "--zipf-requests",
    type=_COUNT,
    default=6000,
    metavar="N",
    help="Of --states, per size of the caches.",
)
@output_options(click.option, "build/bench", "figures, tables and charts", "the figures")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Measures models of the zoo behind the native server, formats side by side in one run."""
    source = click.core.ParameterSource.COMMANDLINE
    chosen = [name for name in _WHOLE if given[name]]
    chosen += ["models"] * (context.get_parameter_source("models") is source)
    if len(chosen) > 1:
        raise click.UsageError(f"give one of {', '.join('--' + name for name in chosen)}")
    from colcast.loadtest import bench

    options, console = SimpleNamespace(**given), report_console(stderr=given["json"])
    if options.papers:
        from colcast.zoo.papers import PAPERS

        options.models = list(PAPERS)
    runs = {
        "states": bench.bench_states,
        "transcoding": bench.bench_transcoding,
        "batching": bench.bench_batching,
    }
    with failures_told():
        figures = runs.get(chosen[0] if chosen else "", bench.bench_all)(options, console)
    if options.json:
        click.echo(json.dumps(figures, indent=1, allow_nan=False))
