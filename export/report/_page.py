"""Renders an export as a page: domains, stages, states, and what the verdict omits."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from colcast.cli.markup import chip, document, paragraphs, table
from colcast.export.cut import row_bytes
from colcast.export.cut._listed import grouped
from colcast.export.report._model_drawing import Box, drawing
from colcast.export.report._report import ExportReport, SignatureReport
from colcast.export.report._verdict import by_size, verdict


def render(report: ExportReport) -> str:
    """The page as HTML."""
    parts = [part for signature in report.signatures for part in _signature(signature)]
    notes = paragraphs("note", report.notes())
    title = f"Export of {', '.join(signature.source for signature in report.signatures)}"
    told = {"seconds": f"{report.seconds:.1f}", "record": "assets.extra/colcast.json"}
    return document(title, "written by colcast export", [*parts, notes], told, "The export")


def _signature(report: SignatureReport) -> Iterable[str]:
    yield f"<h2>{escape(report.name)}</h2>"
    lines = "".join(f"<dt>{head}</dt><dd>{escape(text)}</dd>" for head, text in verdict(report))
    yield f"<dl>{lines}</dl>"
    yield f'<figure class="drawing">{drawing(_boxes(report), _last(report))}</figure>'
    yield from _section("What a request is expected to cost", _costs(report))
    yield from _section("States: what is kept of a row", _states(report))
    yield from _section("Where the user meets the items", _frontier(report))
    yield from _section("What runs for every candidate all the same", _refused(report))
    yield from _section("Signatures whose rows do not mix with others", _rows(report))
    yield _features(report)


def _section(title: str, content: str) -> list[str]:
    return [f"<h2>{escape(title)}</h2>", content] if content else []


def _boxes(report: SignatureReport) -> list[Box]:
    """A box for each domain: its features and its states."""
    domains: dict[str, int] = {}
    for feature in report.features:
        domains[feature.side] = domains.get(feature.side, 0) + 1
    stages = report.stages if report.stages and report.stages.written else None
    boxes = []
    for domain, features in sorted(domains.items(), key=lambda of: (of[0] != "user", of[0])):
        count = f"{features:,} feature{'s' * (features > 1)}"
        if stages and domain in stages.domains:
            kept = row_bytes(stages.states[domain])
            runs, hands = f"{report.name}_{domain}", f"{kept:,} bytes per row"
        elif domain == "user" and report.late:
            runs, hands = f"{report.late.user_ops:,} ops, once", "repeated"
        else:
            runs, hands = "no stage", "columns"
        boxes.append(Box(domain, count, runs, hands))
    return boxes


def _last(report: SignatureReport) -> Sequence[str]:
    stages = report.stages
    outputs = ", ".join(sorted(report.parity.differences)) or "outputs"
    if stages and stages.written:
        return f"{report.name}_pair", f"{stages.pair_ops:,} ops per candidate", outputs
    if report.late:
        ops = report.late.ops - report.late.user_ops
        return report.late.signature, f"{ops:,} ops per candidate", outputs
    return report.name, f"{report.nodes_after:,} nodes per candidate", outputs


def _costs(report: SignatureReport) -> str:
    rows = []
    for of_size in by_size(report.costs):
        for place, cost in enumerate(of_size):
            spread = f"{cost.least_ms:.3g} to {cost.most_ms:.3g}"
            share = f"{100 * cost.cpu_ms / of_size[0].cpu_ms:.0f} %"
            name = chip(place) + escape(cost.signature)
            size = "" if place else f"{cost.candidates}"
            rows.append([size, name, f"{cost.bytes:,}", f"{cost.cpu_ms:.3g}", spread, share])
    heads = ["candidates", "signature", "bytes", "server CPU, ms", "quartiles", "of the first"]
    return table(heads, rows, named=True) if rows else ""


def _states(report: SignatureReport) -> str:
    stages = report.stages
    if not stages:
        return ""
    rows = [
        [escape(domain), f"{row_bytes(states):,}" if not number else "", escape(kind)]
        for domain, states in stages.states.items()
        for number, kind in enumerate(grouped((s.tensor, s.dtype, s.shape, "") for s in states))
    ]
    left = _items(
        f"{domain} is left to the candidates: {why}" for domain, why in stages.left_out.items()
    )
    why = [] if stages.written else [f"no stages: {stages.reason}"]
    why += [f"one user per run, because {stages.why_one}"] if stages.why_one else []
    why += [stages.reuse.line()] if stages.reuse else []
    heads = ["domain", "bytes per row", "tensors"]
    return (table(heads, rows, named=True) if rows else "") + _items(why) + left


def _frontier(report: SignatureReport) -> str:
    late = report.late
    if not late:
        return ""
    kinds = grouped((t.name, t.dtype, t.shape, f", {t.how}") for t in late.frontier)
    return _items([late.summary(), *kinds, *(f"split: {name}" for name in late.split_products)])


def _refused(report: SignatureReport) -> str:
    found: Mapping[str, str] = report.late.refused if report.late else {}
    pair: Mapping[str, str] = report.stages.not_states if report.stages else {}
    told = [f"{name}: {why}" for name, why in {**found, **pair}.items()]
    if isinstance(report.exact, str):
        told.append(f"no {report.name}_exact: {report.exact}")
    if report.late and (why := report.late.why_no_gain()):
        told.append(f"{report.late.signature} saves little: {why}")
    return _items(told)


def _rows(report: SignatureReport) -> str:
    apart = {name: found.why_not for name, found in report.independence.items() if not found.rows}
    return _items(f"{name}: {why}" for name, why in apart.items())


def _features(report: SignatureReport) -> str:
    rows = [
        [
            escape(feature.name),
            escape(feature.side if feature.used else f"{feature.side}, not used"),
            escape(feature.describe()),
        ]
        for feature in report.features
    ]
    listed = table(["feature", "domain", "kind"], rows, named=True)
    return f"<details><summary>{len(rows):,} features</summary>{listed}</details>"


def _items(lines: Iterable[str]) -> str:
    told = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{told}</ul>" if told else ""
