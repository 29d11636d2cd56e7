"""Summarizes an export in five lines, without names of ops."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from colcast.export.cut._late_report import LateReport
from colcast.export.report._cost import Compiled, Cost
from colcast.export.trials._parity import AFFECT

if TYPE_CHECKING:
    from colcast.export.report._report import SignatureReport

_HOW_TO_RECORD = "docs/operations.md, Logging requests, says how"
_PAGE = "assets.extra/colcast.html"
_PLAIN_OPS = "docs/models.md says how"
_NOT_WORTH = 0.95  # share of the source's CPU
_SPREADS = ((0.1, "steady"), (0.3, "give or take a fifth"), (0.6, "give or take a half"))


def verdict(report: "SignatureReport") -> list[tuple[str, str]]:
    """Five lines with headings: written, proved, cost, limit and next step."""
    limit, step = limit_and_step(report)
    return [
        ("written", _without_ops(written(report), report)),
        ("proved", proved(report)),
        ("expected", expected(report)),
        ("limits", _without_ops(limit, report)),
        ("next step", step),
    ]


def written(report: "SignatureReport") -> str:
    parts = [f"{report.name} for {report.source}"]
    if isinstance(report.exact, LateReport):
        parts.append(f"{report.exact.signature} (bit-identical, some user ops once per request)")
    if report.late:
        parts.append(f"{report.late.signature} (the user part once per request)")
        parts.append(_stages(report))
    return ", ".join(parts)


def proved(report: "SignatureReport") -> str:
    """A sentence about the comparisons and the largest difference."""
    parts = [_parity(report)]
    if report.late:
        worst = max((d for by in report.late.proof.values() for d in by.values()), default=0.0)
        sizes = ", ".join(map(str, report.late.proof))
        parts.append(f"{report.late.signature} within {worst:.1g} at {sizes} candidates")
    if report.stages and report.stages.written:
        worst = max(report.stages.difference.values(), default=0.0)
        parts.append(f"stages within {worst:.1g}")
    return "; ".join(parts)


def expected(report: "SignatureReport") -> str:
    """Server CPU and bytes of a request compared with the source's, at each size measured."""
    if not report.costs:
        return "not measured" + (f": {report.parity.note}" if report.parity.note else "")
    pairs = [(of[0], of[-1]) for of in by_size(report.costs)]
    given = "tensors" if report.source_input is None else "tf.Examples"
    sizes = "; ".join(_share(*pair) for pair in pairs)
    size = sum(after.bytes for _, after in pairs) / sum(before.bytes for before, _ in pairs)
    return (
        f"server CPU compared with {given}: {sizes}; {100 * size:.0f} % of the bytes"
        f" (nothing cached, {_rows(report)} rows, one thread)"
    )


def limit_and_step(report: "SignatureReport") -> tuple[str, str]:
    """Two sentences: what limits the export, and the next step."""
    late, stages, parity = report.late, report.stages, report.parity
    recorded = bool(parity.recorded_rows or parity.refused_rows)
    examples = (
        f"none; {_PAGE} has all findings"
        if recorded
        else f"--examples FILE with recorded requests ({_HOW_TO_RECORD})"
    )
    if not parity.rows:
        return f"scores were not compared: {parity.note}", examples
    if report.impure:
        return (
            f"its requests are not joined, split or cached: {report.impure}",
            "--unserved-signatures NAME if no server serves the signature that writes; or send the"
            " changing value as a feature",
        )
    if report.compiled:
        return report.compiled.describe(report.name), _instead_of_compiling(report.compiled)
    if not report.user_features:
        return (
            "no user features are named, so every feature is sent and computed for every candidate",
            "--user-features 'user_*' --late, or "
            + ("" if recorded else "--examples FILE ")
            + "--user-features auto --late",
        )
    if report.no_late:
        return f"no late signature: {report.no_late}", examples
    if late is None:
        own = report.independence.get(report.name)
        if own and own.why_not.startswith(AFFECT):
            return f"{own.why_not}, so its requests are neither joined, split nor cached", examples
        return "the user part runs for every candidate", "--late, which runs it once per request"
    if "While" in late.slowest_refused:
        return (
            f"{late.slowest_refused}",
            "unroll=True in that layer, which turns the loop into ordinary ops",
        )
    if stages and not stages.written:
        return f"no stages, so nothing is cached between requests: {stages.reason}", examples
    if late.why_nothing_moved():
        return f"the user part cannot run once per request: {late.why_nothing_moved()}", examples
    if not recorded:
        return (
            "only generated rows were tried; recorded ones also show which users and items return",
            examples,
        )
    return (
        f"most of the remaining time goes into {_most_time(report)}",
        "--domain shop='shop_*' for features that several candidates of a request share",
    )


def refused(report: "SignatureReport") -> Iterator[str]:
    """What was refused, with the reasons."""
    late, stages = report.late, report.stages
    found: Mapping[str, str] = late.refused if late else {}
    pair: Mapping[str, str] = stages.not_states if stages else {}
    yield from (f"{name}: {why}" for name, why in {**found, **pair}.items())
    if isinstance(report.exact, str):
        yield f"no {report.name}_exact: {report.exact}"
    if stages:
        for domain, why in stages.left_out.items():
            yield f"{domain} has no stage; the last stage reads its columns: {why}"
        if not stages.written:
            yield f"no stages: {stages.reason}"
        if stages.why_one:
            yield f"one user per run, because {stages.why_one}"
    for name, rows in report.independence.items():
        if not rows.rows:
            yield f"{name}: rows are not independent: {rows.why_not}"


def by_size(costs: Iterable[Cost]) -> list[list[Cost]]:
    """The costs for each number of candidates, the source's first."""
    return [list(of) for _, of in groupby(costs, lambda cost: cost.candidates)]


def _stages(report: "SignatureReport") -> str:
    stages = report.stages
    if not stages or not stages.written:
        return "no stages"
    none = [f"none for {domain}: {why}" for domain, why in stages.left_out.items()]
    return "; ".join([f"stages for {', '.join(stages.domains)}", *none])


def _parity(report: "SignatureReport") -> str:
    parity = report.parity
    if not parity.rows:
        return "parsed features are identical, scores were not compared"
    rows = f"{parity.rows - parity.recorded_rows} generated"
    if parity.recorded_rows:
        rows += f" and {parity.recorded_rows} recorded"
    if parity.identical:
        return f"{report.name} is bit-identical on {rows} rows"
    worst = max(parity.differences.values(), default=0.0)
    unstable = f", except {', '.join(parity.unstable)}, which vary" if parity.unstable else ""
    return f"{report.name} differs by at most {worst:.1g} on {rows} rows{unstable}"


def _instead_of_compiling(compiled: Compiled) -> str:
    if compiled.warmed:
        return f"ops that are not compiled, which also gain from --late ({_PLAIN_OPS})"
    return "--warmup with the numbers of candidates that requests have"


def _most_time(report: "SignatureReport") -> str:
    late = report.late
    assert late
    return f"ops that read items ({late.late_ms:.2g} ms at {late.timed_rows} candidates)"


def _rows(report: "SignatureReport") -> str:
    return "recorded" if report.parity.recorded_rows else "generated"


def _share(before: Cost, after: Cost) -> str:
    """The ratio of CPU times at one size, with a word for the spread of the quartiles."""
    share = after.cpu_ms / before.cpu_ms
    where = f"at {before.candidates} candidates"
    if share >= _NOT_WORTH:
        return f"{where} nothing is gained ({_ms(before.cpu_ms)} ms)"
    spread = max(
        after.most_ms / before.least_ms / share - 1, 1 - after.least_ms / before.most_ms / share
    )
    words = next((word for most, word in _SPREADS if spread <= most), "rough")
    values = f"{_ms(after.cpu_ms)} instead of {_ms(before.cpu_ms)} ms"
    return f"{where} {100 * share:.0f} % ({values}, {words})"


def _ms(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{value:,.0f}"


def _without_ops(text: str, report: "SignatureReport") -> str:
    """Replaces nodes' names, which mean little without the graph, with "an op"."""
    return re.sub(rf"\b{re.escape(report.name)}\w*/[^\s,;()\[\]'\"]*[\w/]", "an op", text)
