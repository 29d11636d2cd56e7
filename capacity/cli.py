"""The command line of `colcast capacity`."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
from colcast.cli.options import MILLISECONDS, Command, Number, Parsed, section

if TYPE_CHECKING:
    from colcast.capacity.measured import Measured

_EXAMPLES = """\
\b
Examples:
  colcast capacity --rate 2000 --sla-p99 60ms build/tune
  colcast capacity --rate 2000 --sla-p99 60ms --workers 2 known/report.json new/report.json \\
      --users zipf:1000000:1 --user-state-bytes 67108864"""


def _users(text: str) -> Any:
    from colcast.capacity.users import parse_users

    return parse_users(text)


_demand = section("What has to be carried")
_server = section("The server that was measured")
_affinity = section("Users")
_simulation = section("Simulation")


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@_demand(
    "--rate",
    type=Number(min=0, min_open=True),
    required=True,
    help="Requests per second.",
    metavar="R",
)
@_demand(
    "--sla-p99",
    type=MILLISECONDS,
    required=True,
    metavar="TIME",
    help="The 99th percentile has to be at most this, like 60ms.",
)
@_demand(
    "--spare",
    type=click.IntRange(0, 100),
    default=1,
    metavar="N",
    help="How many replicas may be lost.",
)
@_server("--series", metavar="LABEL", help="Which series of a load test with several.")
@_server(
    "--workers",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Its --num_workers, by default one per core.  [default: that of a tune result]",
)
@_server(
    "--found",
    multiple=True,
    type=Number(0, 1),
    metavar="SHARE",
    help="Which share of its users was known, once per RESULT, where that was not counted.",
)
@_affinity(
    "--users",
    type=Parsed(_users),
    metavar="LAW",
    help="Who asks: zipf:COUNT:EXPONENT, or file:PATH with a line per request, its user's key."
    " Without it all requests are as measured.",
)
@_affinity(
    "--user-state-bytes",
    type=click.IntRange(min=0),
    default=64 << 20,
    metavar="BYTES",
    help="Of a replica's state cache for users, as the server's flag of that name.",
)
@_affinity(
    "--state-bytes",
    type=click.IntRange(min=1),
    default=1220,
    metavar="BYTES",
    help="Of one user's state: :colcast:state_bytes by :colcast:states of the metrics page.",
)
@_affinity(
    "--bound",
    type=Number(min=1),
    default=1.5,
    metavar="X",
    help="By user with a bound: a replica with X times the mean of calls in flight gets no more.",
)
@_simulation(
    "--requests",
    type=click.IntRange(1000, 10_000_000),
    default=100_000,
    metavar="N",
    help="How many to simulate; the first half fills the caches.",
)
@_simulation(
    "--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Same seed, same requests."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of tables.")
def command(**given: Any) -> None:
    """Says how many replicas carry a load within a latency target.

    Reads what colcast loadtest (report.json) or colcast tune (tune.json) measured of one server, or
    the folder they wrote, and simulates replicas of it: a queue each, users' states each. It prints
    what it assumes, and where the measurement of one server ends.

    Several results are of the same server, at other rates, or with users that it knows and users
    that it does not.
    """
    from colcast.capacity.measured import UnusableError
    from colcast.cli.console import report_console, showing_progress

    options = SimpleNamespace(**given)
    try:
        with showing_progress("colcast capacity") as tell:
            report = _report(options, tell)
    except UnusableError as error:
        raise click.ClickException(str(error)) from error
    if options.as_json:
        click.echo(json.dumps(report.as_json(), indent=1, allow_nan=False))
    else:
        report.tell(report_console())


# Implementation details follow.


def _report(options: SimpleNamespace, tell: Any) -> Any:
    from colcast.capacity.costs import costs_of
    from colcast.capacity.measured import UnusableError
    from colcast.capacity.plan import Demand, Model, check_target, highest_rate, plan
    from colcast.capacity.report import Report
    from colcast.capacity.routing import routings

    results = _results(options)
    workers = _workers(options, results)
    tell("what requests cost is fitted to what was measured")
    costs = costs_of(results, workers, by_user=options.users is not None)
    states = options.user_state_bytes // options.state_bytes
    model = Model(
        costs.hit, costs.miss, workers, options.users, states, options.requests, options.seed
    )
    demand = Demand(options.rate, options.sla_p99, options.spare)
    check_target(model, demand)
    plans, impossible = [], []
    for routing in routings(options.bound)[: None if options.users else 1]:
        tell(f"{routing.title}: replicas are simulated")
        try:
            plans.append(plan(model, demand, routing))
        except UnusableError as error:
            impossible.append(str(error))
    if not plans:
        raise UnusableError("; ".join(impossible))
    return Report(
        demand,
        model,
        costs,
        results,
        plans,
        impossible,
        highest_rate(model, demand.p99_ms),
        _flags(options, results, workers),
    )


def _results(options: SimpleNamespace) -> "list[Measured]":
    from colcast.capacity.measured import read

    results = [read(path, options.series) for path in options.results]
    if not options.found:
        return results
    if len(options.found) != len(results):
        raise click.UsageError(
            f"--found is given {len(options.found)} times for {len(results)} results"
        )
    return [one.with_users_found(share) for one, share in zip(results, options.found, strict=True)]


def _workers(options: SimpleNamespace, results: "list[Measured]") -> int:
    """As given, or as the results have them."""
    known = {one.workers for one in results if one.workers}
    if options.workers:
        known.add(options.workers)
    if not known:
        raise click.UsageError(
            "--workers: a load test does not say how many the server had; by default it has one"
            " per core"
        )
    if len(known) > 1:
        raise click.UsageError(
            f"results and --workers say different numbers of workers: {sorted(known)}"
        )
    return known.pop()


def _flags(options: SimpleNamespace, results: "list[Measured]", workers: int) -> list[str]:
    flags = next((list(one.flags) for one in results if one.flags), [f"--num_workers={workers}"])
    return [*flags, *([f"--user_state_bytes={options.user_state_bytes}"] if options.users else [])]
