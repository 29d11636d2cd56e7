"""Renders an export as a page: domains, cost, what was refused and why, features."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from colcast.cli.markup import COLOURS, page
from colcast.export.cut._stage import row_bytes
from colcast.export.report._report import ExportReport, SignatureReport
from colcast.export.report._verdict import by_size, refused, verdict


def render(report: ExportReport) -> str:
    """Makes the page."""
    return page(
        "export.report/page.html",
        title=f"Export of {', '.join(signature.source for signature in report.signatures)}",
        machine="written by colcast export",
        heading="The export",
        settings={"seconds": f"{report.seconds:.1f}", "record": "assets.extra/colcast.json"},
        notes=report.notes(),
        signatures=[
            {
                "name": signature.name,
                "verdict": verdict(signature),
                "drawing": drawing(_boxes(signature), _last(signature)),
                "costs": by_size(signature.costs),
                "refused": list(refused(signature)),
                "features": signature.features,
            }
            for signature in report.signatures
        ],
    )


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
