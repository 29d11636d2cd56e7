"""Runs a whole load test of a team's own model, traffic and server."""

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from math import inf
from pathlib import Path
from types import SimpleNamespace

from colcast.cli.console import counted, report_console, showing_progress
from colcast.loadtest.measure.budget import INTERRUPTED
from colcast.loadtest.measure.meters import Meter, meter_of
from colcast.loadtest.measure.recording import figures_of
from colcast.loadtest.measure.run import Options, Result, at_rate, searching, with_clients
from colcast.loadtest.measure.search import Ended, Sla, Window
from colcast.loadtest.measure.series import LeftOut, Series, Target, prepare
from colcast.loadtest.report.gate import Thresholds, headline, junit
from colcast.loadtest.report.output import figures_table, make_folder, windows_shown, write
from colcast.loadtest.report.page import render
from colcast.loadtest.report.report import Report
from colcast.loadtest.send import traffic
from rich.console import Console

STANDARD_OUTPUT = Path("-")
_LOOKUP_TIMEOUT_SECONDS = 10.0


def load_test(args: SimpleNamespace, typed: str) -> int:
    """Runs a load test, prints the result and writes its report.

    Args:
      args: the options of `colcast loadtest`.
      typed: the command line, for the report.

    Returns:
      0; 1 if answers were wrong, refused or missing, if a threshold was missed, or if a search
      confirmed no rate; 130 if a search was interrupted.
    """
    # With --json or --junit -, standard output has only that output.
    console = report_console(stderr=args.json or args.junit == STANDARD_OUTPUT)
    targets = args.targets
    meters = _meters(args, targets)
    make_folder(args.output)
    data = traffic.load(args, lambda: targets[0].client(args.model, _LOOKUP_TIMEOUT_SECONDS))
    with showing_progress("colcast loadtest") as tell:
        tell(f"encoding {len(data)} requests and sending each once")
        series, left_out = prepare(targets, args.model, args.formats, data, args.signature)
    for one in left_out:
        console.print(str(one), markup=False)
    formats = counted(len({one.format for one in series}), "format")
    console.print(f"{counted(len(data), 'request')} prepared in {formats}")
    results = _measure(args, series, meters, console)
    report = Report(
        settings=_settings(args, typed, len(data)),
        results=results,
        sizes=[request.rows for request in data],
        sla=latency_target(args),
        left_out=[*left_out, *_not_reached(series, results)],
        thresholds=thresholds(args),
        load={n: v for n in ("rate", "clients") if (v := vars(args)[n]) is not None},
    )
    _tell(report, console)
    _write(report, args, console)
    for problem in report.problems:
        print(problem, file=sys.stderr)
    if any(result.found and result.found.ended is Ended.INTERRUPT for result in results):
        return INTERRUPTED
    return 0 if report.passed else 1


def _tell(report: Report, console: Console) -> None:
    """Prints figures, rates, the headline and verdicts."""
    rows = [(result.series.label, figures_of(result.recording)) for result in report.results]
    console.print(figures_table(rows))
    for result in report.results:
        if result.found and result.found.confirmed:
            bound = "at most" if result.found.settled else "at least"
            console.print(
                f"{result.series.label}: {bound} {result.found.rate:,.0f} per second "
                f"with {report.sla}",
            )
    if best := headline(report.results):
        console.print(str(best))
    for verdict in report.verdicts:
        console.print(str(verdict))


def _write(report: Report, args: SimpleNamespace, console: Console) -> None:
    """Writes the page and the figures, and prints caveats."""
    values = report.as_json()
    for path in write(args.output, values, render(values)):
        console.print(path)
    for note in report.notes:
        console.print(note, markup=False)
    if args.json:
        print(json.dumps(values, indent=1, allow_nan=False))
    if args.junit == STANDARD_OUTPUT:
        print(junit(report.verdicts, report.problems))
    elif args.junit:
        args.junit.write_text(junit(report.verdicts, report.problems), encoding="utf-8")
        console.print(str(args.junit))


def latency_target(args: SimpleNamespace) -> Sla | None:
    """The target of --find-max; None without it."""
    return _slas(args)[0] if args.find_max else None


def thresholds(args: SimpleNamespace) -> Thresholds:
    """The thresholds of the run; a search has a target instead of latency thresholds."""
    return Thresholds(() if args.find_max else _slas(args), args.max_errors)


def _slas(args: SimpleNamespace) -> tuple[Sla, ...]:
    targets = ((95, args.sla_p95), (99, args.sla_p99))
    return tuple(Sla(percentile, value) for percentile, value in targets if value is not None)


def _not_reached(series: Sequence[Series], results: Sequence[Result]) -> list[LeftOut]:
    return [
        LeftOut(one.target, one.format, "the run was interrupted before its turn")
        for one in series[len(results) :]
    ]


def _measure(
    args: SimpleNamespace,
    series: Sequence[Series],
    meters: dict[str, Meter],
    console: Console,
) -> list[Result]:
    options = Options(
        seed=args.seed,
        windows=args.windows,
        window_seconds=args.seconds,
        timeout_seconds=args.timeout,
        keep_every=args.check_every,
        tolerance=args.tolerance,
    )
    sla = latency_target(args)
    if sla is not None:

        def tried(one: Series, window: Window) -> None:
            console.print(f"{one.label}: {window.shown(sla)}")

        return searching(series, sla, meters, options, tried, 60 * (args.max_minutes or inf))

    windows = len(series) * args.windows
    with windows_shown("colcast loadtest", windows, args.seconds) as begin:
        if args.clients is not None:
            return with_clients(series, args.clients, meters, options, lambda *_: begin())
        return at_rate(series, args.rate, meters, options, lambda *_: begin())


def _meters(args: SimpleNamespace, targets: Sequence[Target]) -> dict[str, Meter]:
    for flag, given in (("--pid", args.pid), ("--metrics", args.metrics)):
        if given and len(given) != len(targets):
            raise ValueError(f"{flag} is given {len(given)} times for {len(targets)} targets")
    meters: dict[str, Meter] = {}
    for place, target in enumerate(targets):
        metrics, pid = (given[place] if given else None for given in (args.metrics, args.pid))
        if meter := meter_of(target.address, metrics, pid):
            meters[target.address] = meter
    return meters


def _settings(args: SimpleNamespace, typed: str, requests: int) -> dict[str, str]:
    """The settings; call it after the run, because it records the run's end."""
    if args.find_max:
        load = f"search for the highest rate with {latency_target(args)}, open loop"
    elif args.clients is not None:
        load = f"{args.clients} clients that wait for their answers"
    else:
        load = f"{args.rate:g} requests per second, open loop with exponential gaps"
    return {
        "command": typed,
        "model": args.model,
        "load": load,
        "windows": f"{args.windows} of {args.seconds:g} s of each format, in turn",
        "traffic": f"{args.traffic}, {requests} different requests, seed {args.seed}",
        "finished": datetime.now().astimezone().isoformat(timespec="seconds"),
    }
