"""The command line of `colcast compare`."""

import shlex
from types import SimpleNamespace
from typing import Any

import click
from colcast.cli.options import Command, Number, removed, section
from colcast.client.cli import channel_options, tls_options
from colcast.loadtest.options import (
    FORMAT,
    output_options,
    parsed,
    report_failures,
    shared,
    traffic_options,
)

_EXAMPLES = """\
\b
Examples:
  colcast compare models/movies build/movies
  colcast compare 127.0.0.1:8500@3 127.0.0.1:8500@4 --model movies \\
      --traffic requests:log.tfrecord --min-top10-overlap 0.9
  colcast compare stock:8500 colcast:8500 --model movies --traffic examples:log.tfrecord \\
      --format example --format-b late --max-difference 1e-5
  colcast compare models/movies/3 models/movies/4 --traffic zoo:movielens"""

_DEFAULT_MODEL = "model"


_SIDE = parsed("compare.sides", "parse_side")
_SHARE = Number(min=0, max=1)

_compared = section("What is compared")
_traffic = section("Traffic")
_limits = section("Thresholds of every output; if one is missed, the exit code is 1")
_measuring = section("Measuring")
_report = section("Report")


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("a", type=_SIDE)
@click.argument("b", type=_SIDE)
@_compared(
    "--model",
    metavar="NAME",
    help="The served model; required if A or B is a running server.",
)
@_compared(
    "--signature",
    metavar="NAME",
    help="The signature to call instead of the formats' own.",
)
@_compared(
    "--format",
    type=FORMAT,
    metavar="FORMAT",
    help="How requests are sent, as in colcast loadtest. [default: recorded for requests:FILE,"
    " otherwise A's own format, and every format of B's export]",
)
@_compared(
    "--format-b",
    type=FORMAT,
    metavar="FORMAT",
    help="How B's requests are sent. [default: as A's, if --format is given]",
)
@_compared(
    "--flag-a",
    multiple=True,
    metavar="FLAG",
    help="A flag for the server started for A, such as --flag-a=--example_transcoding=off.",
)
@_compared("--flag-b", multiple=True, metavar="FLAG", help="The same for B.")
@traffic_options(_traffic)
@_limits(
    "--max-difference",
    type=Number(min=0),
    metavar="X",
    help="Largest absolute difference of two values.",
)
@_limits(
    "--max-relative-difference",
    type=Number(min=0),
    metavar="X",
    help="Largest difference as a share of the larger of two values.",
)
@_limits(
    "--min-top10-overlap",
    type=_SHARE,
    metavar="X",
    help="Share of equal candidates among the ten highest scores, mean over requests.",
)
@removed("--min-top100-overlap", "use --min-top10-overlap or --min-correlation")
@_limits(
    "--min-correlation",
    type=Number(min=-1, max=1),
    metavar="X",
    help="Spearman's correlation of the candidates' ranks, mean over requests.",
)
@_measuring(
    "--rounds",
    type=click.IntRange(min=0),
    default=5,
    metavar="N",
    help="How often all requests are sent to measure latency and CPU, alternately to A and B; 0"
    " measures neither.",
)
@shared(_measuring, "--timeout")
@output_options(_report, "build/compare", "report.html and report.json", "report.json")
@tls_options(section("TLS"))
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Sends the same requests to A and to B and shows how far their answers differ.

    Each is a server, HOST:PORT or HOST:PORT@VERSION, or a folder, for which a server is started: a
    SavedModel, or a base path whose latest version is served. Shows the largest differences and
    their positions, the overlap of the top candidates, rank correlation, latency and server
    CPU. The exit code is 1 if only one of them answers a request, if answers have
    different forms, or if a threshold was missed.
    """
    options = SimpleNamespace(**given)
    options.sides = (options.a, options.b)
    options.tls = channel_options(given).tls
    for name, side, flags in zip(
        "AB", options.sides, (options.flag_a, options.flag_b), strict=True
    ):
        if side.folder is None and options.model is None:
            raise click.UsageError(f"--model is missing: {name} is the server {side.text}")
        if side.folder is None and flags:
            raise click.UsageError(
                f"--flag-{name.lower()}: {name} is {side.text}, which is already running"
            )
    options.model = options.model or _DEFAULT_MODEL
    from colcast.loadtest.compare.run import compare

    typed = shlex.join(["colcast", *(context.obj or ())])
    with report_failures():
        return compare(options, typed)
