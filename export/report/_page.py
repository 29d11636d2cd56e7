"""Renders an export as a page: domains, stages, states, and everything the verdict omits."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from colcast.cli.markup import COLOURS, chip, document, paragraphs, table
from colcast.export.cut._late_report import grouped
from colcast.export.cut._stage import row_bytes
from colcast.export.report._report import ExportReport, SignatureReport
from colcast.export.report._verdict import by_size, verdict


def render(report: ExportReport) -> str:
    parts = [part for signature in report.signatures for part in _signature(signature)]
    notes = paragraphs("note", report.notes())
    title = f"Export of {', '.join(signature.source for signature in report.signatures)}"
    facts = {"seconds": f"{report.seconds:.1f}", "record": "assets.extra/colcast.json"}
    return document(title, "written by colcast export", [*parts, notes], facts, "The export")


def _signature(report: SignatureReport) -> Iterable[str]:
    yield f"<h2>{escape(report.name)}</h2>"
    lines = "".join(f"<dt>{head}</dt><dd>{escape(text)}</dd>" for head, text in verdict(report))
    yield f"<dl>{lines}</dl>"
    yield f'<figure class="drawing">{drawing(_boxes(report), _last(report))}</figure>'
    yield from _section("What a request is expected to cost", _costs(report))
    yield from _section("States: what is cached per row", _states(report))
    yield from _section("Where the user meets the items", _frontier(report))
    yield from _section("What still runs for every candidate", _refused(report))
    yield from _section("Signatures whose rows do not mix with others", _rows(report))
    yield _features(report)


def _section(title: str, content: str) -> list[str]:
    return [f"<h2>{escape(title)}</h2>", content] if content else []


class _Box(NamedTuple):
    """A domain: its features, the ops that read them, and the tensors that the last stage reads."""

    domain: str
    features: str
    runs: str
    hands: str


def _boxes(report: SignatureReport) -> list[_Box]:
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
        boxes.append(_Box(domain, count, runs, hands))
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
        f"{domain} has no stage; the last stage reads its columns: {why}"
        for domain, why in stages.left_out.items()
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
    lines = [f"{name}: {why}" for name, why in {**found, **pair}.items()]
    if isinstance(report.exact, str):
        lines.append(f"no {report.name}_exact: {report.exact}")
    if report.late and (why := report.late.why_no_gain()):
        lines.append(f"{report.late.signature} saves little: {why}")
    return _items(lines)


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
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


_WIDTH, _HEIGHT, _GAP, _TOP = 250, 76, 18, 6
_LAST_X, _OUT_X, _ALL = 480, 790, 960
_LINE = 20


def drawing(domains: Sequence[_Box], last: Sequence[str]) -> str:
    """An SVG in the page's colours.

    Args:
        domains: boxes from top to bottom.
        last: lines of the last stage's box: what it runs, and the outputs.
    """
    height = max(len(domains) * (_HEIGHT + _GAP) - _GAP, _HEIGHT) + 2 * _TOP
    middle = height / 2
    name, runs, outputs = last
    parts = [_box(_LAST_X, middle - _HEIGHT / 2, ("candidates", name, runs), "var(--ink)")]
    for place, of in enumerate(domains):
        top = _TOP + place * (_HEIGHT + _GAP)
        colour = f"var(--s{place % COLOURS})"
        parts.append(_box(0, top, (f"{of.domain}: {of.features}", of.runs), colour))
        parts.append(_arrow(_WIDTH, top + _HEIGHT / 2, _LAST_X, middle, colour))
        off_the_arrow = -8 if top + _HEIGHT / 2 <= middle else 18
        parts.append(_text(_WIDTH + 12, top + _HEIGHT / 2 + off_the_arrow, of.hands))
    parts.append(_arrow(_LAST_X + _WIDTH, middle, _OUT_X, middle, "var(--ink)"))
    parts.append(_text(_OUT_X + 8, middle + 5, outputs))
    return (
        f'<svg viewBox="0 0 {_ALL} {height}" role="img" aria-label="the model by domain"'
        f' font-size="15">{"".join(parts)}</svg>'
    )


def _box(x: float, y: float, lines: Sequence[str], colour: str) -> str:
    first = y + _HEIGHT / 2 - _LINE * (len(lines) - 1) / 2 + 5
    texts = [_text(x + 12, first + _LINE * n, line, bold=not n) for n, line in enumerate(lines)]
    return (
        f'<rect x="{x + 1}" y="{y}" width="{_WIDTH - 2}" height="{_HEIGHT}" rx="8"'
        f' fill="var(--paper)" stroke="{colour}" stroke-width="2"/>{"".join(texts)}'
    )


def _arrow(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    tip = f"M{to_x},{to_y} l-9,-5 v10 z"
    return (
        f'<path d="M{x},{y} C{x + 150},{y} {to_x - 80},{to_y} {to_x - 8},{to_y}" fill="none"'
        f' stroke="{colour}" stroke-width="2"/><path d="{tip}" fill="{colour}"/>'
    )


def _text(x: float, y: float, text: str, *, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x}" y="{y}" fill="var(--ink)"{weight}>{escape(text)}</text>'
