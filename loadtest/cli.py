"""The command line of `colcast loadtest`."""

import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from colcast.cli.options import Command, Number, section
from colcast.client.cli import channel_options, tls_options
from colcast.loadtest.options import (
    FORMATS,
    TARGET,
    output_options,
    report_failures,
    shared,
    traffic_options,
)

_EXAMPLES = """\
\b
Examples:
  colcast loadtest --target 127.0.0.1:8500 --model movies --rate 200
  colcast loadtest --target stock=10.0.0.1:8500 --target colcast=10.0.0.2:8500 --model movies \\
      --formats example,late --traffic examples:log.tfrecord --find-max --sla-p95 25ms
  colcast loadtest --target 127.0.0.1:8500 --model movies --formats columnar \\
      --rate 200 --sla-p95 25ms --max-errors 0 --junit loadtest.xml"""

_LOADS = ("rate", "clients", "find_max")
_FILE = click.Path(path_type=Path)
_ABOVE_0 = Number(min=0, min_open=True)
_COUNT = click.IntRange(min=1)

_tested = section("What is tested")
_traffic = section("Traffic")
_load = section("Load, one of")
_gate = section("Thresholds; if a series misses one, the exit code is 1")
_measuring = section("Measuring")
_report = section("Report")


def _print_locust_file(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(Path(__file__).resolve().with_name("locust") / "locustfile.py")
        ctx.exit()


@click.command(cls=Command, epilog=_EXAMPLES)
@click.option(
    "--locust-file",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_locust_file,
    help='Print the file for Locust and exit: locust -f "$(colcast loadtest --locust-file)"',
)
@_tested(
    "--target",
    "targets",
    type=TARGET,
    multiple=True,
    required=True,
    metavar="[NAME=]HOST:PORT",
    help="A server's gRPC address; repeatable with different names, to compare servers.",
)
@_tested("--model", required=True, metavar="NAME", help="The served model.")
@_tested(
    "--signature",
    metavar="NAME",
    help="The signature to test. Formats of columns call it, or the one that the export made from"
    " it.",
)
@_tested(
    "--formats",
    type=FORMATS,
    default="example,repeated,columnar",
    metavar="A,B",
    help="Some of example, elwc, repeated, columnar, late, stock and recorded; all are compared"
    " with the first.",
)
@_tested(
    "--pid",
    type=int,
    multiple=True,
    metavar="PID",
    help="The server's process, one per target; servers on this machine are found by their port.",
)
@_tested(
    "--metrics",
    multiple=True,
    metavar="URL",
    help="The server's Prometheus page, one per target, if it runs on another machine.",
)
@traffic_options(_traffic)
@_load(
    "--rate",
    type=_ABOVE_0,
    metavar="R",
    help="Send R requests per second with exponential gaps, without waiting for answers.",
)
@_load(
    "--clients", type=_COUNT, metavar="K", help="Send with K clients that wait for their answers."
)
@_load(
    "--find-max",
    is_flag=True,
    help="Find the highest rate that meets --sla-p95 or --sla-p99.",
)
@shared(_load, "--max-minutes")
@shared(_gate, "--sla-p95", "--sla-p99")
@_gate(
    "--max-errors",
    type=click.IntRange(min=0),
    metavar="N",
    help="Number of calls of a series that may fail.",
)
@_measuring(
    "--seconds", type=_ABOVE_0, default=5.0, metavar="S", help="Length of a window, in seconds."
)
@_measuring(
    "--windows",
    type=_COUNT,
    default=3,
    metavar="W",
    help="Windows per format; formats take turns.",
)
@shared(_measuring, "--timeout")
@_measuring(
    "--check-every",
    type=click.IntRange(min=0),
    default=10,
    metavar="N",
    help="Check one in N answers; 0 checks none.",
)
@_measuring(
    "--tolerance",
    type=Number(min=0),
    default=1e-5,
    metavar="X",
    help="The largest allowed change of a score, as a share of the largest score in its request.",
)
@output_options(_report, "build/loadtest", "report.html and report.json", "report.json")
@_report(
    "--junit",
    type=_FILE,
    metavar="FILE",
    help="Also write the result as JUnit XML; - is standard output.",
)
@tls_options(section("TLS"))
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Sends the same ranking requests in several formats and compares their costs.

    Measures server CPU, bytes, latency and throughput. Checks a sample of the answers under load
    against answers recorded before it. The exit code is 1 if answers were wrong, refused or
    missing, a threshold was missed, or a search confirmed no rate. An interrupted search writes its
    results so far.
    """
    options = SimpleNamespace(**given)
    if sum(given[load] not in (None, False) for load in _LOADS) != 1:
        raise click.UsageError("give exactly one of --rate, --clients and --find-max")
    if options.find_max and (options.sla_p95 is None) == (options.sla_p99 is None):
        raise click.UsageError("--find-max needs one target: --sla-p95 25ms or --sla-p99 60ms")
    if options.max_minutes and not options.find_max:
        raise click.UsageError("--max-minutes is for --find-max; other runs use --seconds")
    from colcast.loadtest.load_test import STANDARD_OUTPUT, load_test

    if options.json and options.junit == STANDARD_OUTPUT:
        raise click.UsageError("--json and --junit - both print to standard output: give one")
    tls = channel_options(given).tls
    options.targets = [replace(target, tls=tls) for target in options.targets]
    typed = shlex.join(["colcast", *(context.obj or ())])
    with report_failures():
        return load_test(options, typed)
