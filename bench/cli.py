"""The command line of `colcast bench`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from colcast.cli.console import report_console
from colcast.cli.options import Command, Parsed
from colcast.loadtest.options import output_options, report_failures

_COUNT = click.IntRange(min=1)


def _sizes(text: str) -> tuple[int, ...]:
    if not all(size.isdecimal() and int(size) for size in text.split(",")):
        raise ValueError(f"{text!r}: expected whole numbers above 0, like 20,100,500")
    return tuple(map(int, text.split(",")))


@click.command(
    cls=Command,
    epilog="""\
\b
Examples:
  colcast bench                              all but graphs, papers and text; make bench
  colcast bench formats/wide states          these rows
  colcast bench papers --sizes 100           the eight papers' models""",
)
@click.argument("rows", nargs=-1, metavar="[ROWS]...")
@click.option(
    "--sizes",
    type=Parsed(_sizes),
    metavar="A,B",
    help="Candidates per request, instead of the rows' own sizes.",
)
@click.option(
    "--rounds", type=_COUNT, default=10, metavar="N", help="Rounds, in which variants take turns."
)
@click.option(
    "--calls", type=_COUNT, default=20, metavar="N", help="Calls of each variant in a round."
)
@click.option(
    "--server-flag",
    multiple=True,
    metavar="--FLAG=VALUE",
    help="Another flag for every server; repeatable.",
)
@output_options(click.option, "build/bench", "bench.md and bench.json", "figures")
def command(**given: Any) -> None:
    """Measures rows of one table: models, formats, servers, protocols, the cost of encoding.

    ROWS are parts (formats, states, keys, transcoding, batches, protocols, encoding, graphs,
    papers, text) or groups (formats/wide and so on). The variants of a group take turns and send
    the same requests.
    """
    from colcast.bench.run import Effort, run
    from colcast.bench.table import USUAL
    from colcast.loadtest.measure.recording import finite

    effort = Effort(given["rounds"], given["calls"], given["sizes"] or (), given["server_flag"])
    console = report_console(stderr=given["json"])
    with report_failures():
        lines = run(given["rows"] or USUAL, effort, Path(given["output"]), console)
    if given["json"]:
        click.echo(json.dumps(finite([asdict(line) for line in lines]), indent=1))
