"""The command line of `colcast tune`."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from colcast.cli.options import Command, Number, section
from colcast.loadtest.options import (
    FORMATS,
    output_options,
    report_failures,
    shared,
    traffic_options,
)

_EXAMPLES = """\
\b
Examples:
  colcast tune --model movies --model-base-path build/movies --sla-p95 25ms
  colcast tune --model movies --model-base-path build/movies --sla-p95 25ms \\
      --sizes lognormal:100:1
  colcast tune --graphs --model movies --model-base-path build/movies
  colcast serve --model_name=movies --model_base_path=... --flagfile=build/tune/server.flags"""

_served = section("What is served")
_graphs = section("Graphs")
_traffic = section("Traffic")
_search = section("Search")
_report = section("Report")


@click.command(cls=Command, epilog=_EXAMPLES)
@_served("--model", required=True, metavar="NAME", help="The model's name.")
@_served(
    "--model-base-path",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    metavar="DIR",
    help="The directory with a directory per version.",
)
@_served(
    "--flag",
    "flags",
    multiple=True,
    metavar="FLAG",
    help="Another flag for the server, such as --flag=--example_transcoding=late.",
)
@_graphs(
    "--graphs",
    is_flag=True,
    help="Prove and measure rewritten graphs instead of settings; writes graphs.json for the"
    " server's --graph_choices.",
)
@_graphs(
    "--tolerance",
    type=Number(min=0, max=1),
    default=0.005,
    metavar="X",
    help="The largest change of a score, as a share of the largest score in its request.",
)
@_traffic(
    "--format",
    "formats",
    type=FORMATS,
    default="late",
    metavar="FORMAT",
    help="How requests are sent, as in colcast loadtest.",
)
@traffic_options(_traffic, sizes="lognormal:100:1")
@shared(_search, "--sla-p95", "--sla-p99", "--max-minutes")
@_search(
    "--seconds",
    type=Number(min=0, min_open=True),
    default=3.0,
    metavar="S",
    help="Length of a window, in seconds.",
)
@output_options(_report, "build/tune", "server.flags and tune.json, or graphs.json", "tune.json")
def command(**given: Any) -> int:
    """Finds the server settings that sustain the highest load within a latency target.

    Starts the server with one setting after another, measures each under open-loop load, and
    climbs: first workers and threads per op, then how requests share the workers. Writes the best
    setting as a flag file for the server; an interrupted search writes the best one so far.
    """
    options = SimpleNamespace(**given)
    if options.graphs:
        from colcast.loadtest.tune.graphs import run as tune_graphs

        with report_failures():
            return tune_graphs(options)
    if (options.sla_p95 is None) == (options.sla_p99 is None):
        raise click.UsageError("give one target: --sla-p95 25ms or --sla-p99 60ms")
    if len(options.formats) != 1:
        raise click.UsageError("--format: one format is tuned for at a time")
    from colcast.loadtest.tune.tuning import run

    with report_failures():
        return run(options)
