"""Compares the answers and the cost of two servers, versions or models."""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from types import SimpleNamespace

from colcast.cli.console import report_console, showing_progress
from colcast.loadtest.compare.agreement import OutputAgreement, agreement
from colcast.loadtest.compare.page import render
from colcast.loadtest.compare.plan import Plan, planned
from colcast.loadtest.compare.report import CompareReport
from colcast.loadtest.compare.sides import Served, series_of, serving
from colcast.loadtest.measure.correctness import answers_in_peace
from colcast.loadtest.measure.recording import Figures, figures_of
from colcast.loadtest.measure.run import Options, with_clients
from colcast.loadtest.measure.series import Series
from colcast.loadtest.report.output import figures_table, make_folder, plain_table, write
from colcast.loadtest.send import traffic
from colcast.loadtest.send.formats import RequestData, signature_named
from rich.table import Table

_LOOKUP_TIMEOUT_SECONDS = 10.0
_CLIENTS = 1  # so that no request waits for another one


def compare(args: SimpleNamespace, typed: str) -> int:
    """Compares A and B, prints the result and writes the report, with the command line `typed`.

    Returns:
      0; 1 if only one side answers a request, forms differ, or a threshold was missed.
    """
    console = report_console(stderr=args.json)
    make_folder(args.output)
    with showing_progress("colcast compare") as tell:
        report = _compared(args, typed, tell)
    for name, side in zip("AB", report.sides, strict=True):
        console.print(f"{name}: {side}", markup=False)
    console.print(f"compared: {report.settings['compared']}", markup=False)
    console.print(agreement_table(report.agreement.outputs))
    if report.figures:
        labels = ("A", report.timed_side)
        console.print(figures_table(list(zip(labels, report.figures, strict=True))))
    lines = [report.headline, *map(str, report.verdicts), *report.notes]
    values = report.as_json()
    for text in [*lines, *write(args.output, values, render(values))]:
        console.print(text, markup=False)
    if args.json:
        print(json.dumps(values, indent=1, allow_nan=False))
    for problem in report.problems:
        print(problem, file=sys.stderr)
    return 0 if report.passed else 1


def _compared(args: SimpleNamespace, typed: str, tell: Callable[[str], None]) -> CompareReport:
    with ExitStack() as running:
        served = []
        for name, side, flags in zip("AB", args.sides, (args.flag_a, args.flag_b), strict=True):
            tell(f"{name} starts" if side.folder else f"{name} is {side.address}")
            served.append(running.enter_context(serving(name, side, args.model, flags, args.tls)))
        plan = planned(args, served)
        data = _requests(args, plan, served)
        tell(f"encoding {len(data)} requests")
        a, *others = _series(args, plan, served, data)
        tell("comparing answers")
        before, *answers = [
            answers_in_peace(it.target.address, it.requests, it.target.tls) for it in (a, *others)
        ]
        compared = {
            one.format: zip(
                zip(a.requests, one.requests, strict=True),
                zip(before, after, strict=True),
                strict=True,
            )
            for one, after in zip(others, answers, strict=True)
        }
        found = agreement(compared)
        tell("timing A and B in turn")
        figures = _timed(args, [a, others[-1]], served)
    called = [signature_named(one.requests[0]) for one in (a, *others)]
    settings = _settings(args, typed, len(data), timed := others[-1].format)
    settings["compared"] = f"A's {called[0]} with B's {', '.join(called[1:])}"
    sides = (f"{args.sides[0].text}, {plan.a}", f"{args.sides[1].text}, {', '.join(plan.b)}")
    return CompareReport(settings, sides, found, figures, vars(args), timed)


def _requests(args: SimpleNamespace, plan: Plan, served: Sequence[Served]) -> list[RequestData]:
    """The requests for both sides; the side with columns determines generated values."""
    target = served[plan.columns_of].target
    signature = args.signature or plan.signature(plan.columns_of, "columnar")
    asked = SimpleNamespace(**{**vars(args), "signature": signature})
    return traffic.load(asked, lambda: target.client(args.model, _LOOKUP_TIMEOUT_SECONDS))


def _series(
    args: SimpleNamespace, plan: Plan, served: Sequence[Served], data: Sequence[RequestData]
) -> list[Series]:
    """The series of A, and of B in each of its formats."""
    asked = [(0, plan.a), *((1, name) for name in plan.b)]
    return [
        series_of(served[side].target, args.model, name, data, plan.signature(side, name))
        for side, name in asked
    ]


def agreement_table(outputs: Sequence[OutputAgreement]) -> Table:
    """A table with one row per output: differences, the ranking, non-finite values."""
    table = plain_table("")
    table.add_column("output", no_wrap=True)
    headers = ["values", "not equal", "largest difference", "relative", "top 10"]
    for header in [*headers, "ranks", "NaN", "inf"]:
        table.add_column(header, justify="right")
    for one in outputs:
        ranking = (one.top_10_overlap, one.rank_correlation)
        not_finite = [f"{of['A']:,}, {of['B']:,}" for of in (one.nan, one.infinite)]
        table.add_row(
            one.name,
            f"{one.values:,}",
            f"{one.differing:,}",
            str(one.largest_difference),
            one.largest_relative_difference.size,
            *("-" if figure is None else f"{figure.mean:.4g}" for figure in ranking),
            *not_finite,
        )
    return table


def _timed(
    args: SimpleNamespace, series: Sequence[Series], served: Sequence[Served]
) -> list[Figures]:
    """Measures every request `rounds` times, A and B alternating."""
    if not args.rounds:
        return []
    options = Options(
        windows=args.rounds,
        window_calls=len(series[0].requests),
        timeout_seconds=args.timeout,
        keep_every=0,
    )
    meters = {it.target.address: it.meter for it in served if it.meter}
    return [figures_of(it.recording) for it in with_clients(series, _CLIENTS, meters, options)]


def _settings(args: SimpleNamespace, typed: str, requests: int, timed: str) -> dict[str, str]:
    settings = {
        "command": typed,
        "model": args.model,
        "traffic": f"{args.traffic}, {requests} different requests, seed {args.seed}",
        "figures": f"every request {args.rounds} times with one client, A and B ({timed}) in turn"
        if args.rounds
        else "not measured",
        "finished": datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    flags = {"flags of A": args.flag_a, "flags of B": args.flag_b}
    return settings | {name: " ".join(given) for name, given in flags.items() if given}
