"""Server CPU by format as shares of the first format's, a panel a model: an SVG file by itself.

For documents: it carries its own colours, for light and dark pages, and loads nothing.
"""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

from colcast.loadtest.figures import milliseconds
from colcast.loadtest.formats import FORMATS
from colcast.loadtest.side_by_side import Line

_PANEL_WIDTH, _FULL_HEIGHT, _GAP = 400, 180, 24  # _FULL_HEIGHT: of a bar of 100 %
_TOP, _LEFT, _BOTTOM = 108, 44, 32
_STYLE = """
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1d2330 }
.soft { fill: #5c6577 } .name { font-weight: 600; font-size: 14px } .value { font-size: 10px }
.middle { text-anchor: middle } .end { text-anchor: end } .grid { stroke: #d9dde5 }
.s0 { fill: #8b94a7 } .s1 { fill: #d97706 } .s2 { fill: #0f8f6f } .s3 { fill: #3867c7 }
.s4 { fill: #b4307a } .s5 { fill: #7a7f1d }
@media (prefers-color-scheme: dark) { text { fill: #e6e9ef } .soft { fill: #9aa4b8 }
.grid { stroke: #343b4a } .s0 { fill: #7d8699 } .s1 { fill: #f0a04b } .s2 { fill: #3fc6a0 }
.s3 { fill: #7aa2f7 } }
"""


def share_chart(models: Mapping[str, Sequence[Line]]) -> str:
    """Bars of CPU per request, each size's first format being 100 %; milliseconds above them.

    Args:
      models: name -> lines as `side_by_side` gives them, every model in the same formats.
    """
    formats = list(dict.fromkeys(line.format for lines in models.values() for line in lines))
    width = len(models) * (_LEFT + _PANEL_WIDTH) + (len(models) - 1) * _GAP
    parts = [_legend(formats)]
    for place, (model, lines) in enumerate(models.items()):
        parts.append(_panel(model, lines, place * (_LEFT + _PANEL_WIDTH + _GAP) + _LEFT))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} '
        f'{_TOP + _FULL_HEIGHT + _BOTTOM}" role="img"><title>Server CPU a request by format</title>'
        f"<style>{_STYLE}</style>{''.join(parts)}</svg>\n"
    )


def _legend(formats: Sequence[str]) -> str:
    first = escape(FORMATS[formats[0]].title)
    heading = f"Server CPU a request: {first} is 100 %, milliseconds above the bars"
    parts, x = [f'<text x="{_LEFT}" y="16">{heading}</text>'], _LEFT
    for series, name in enumerate(formats):
        title = FORMATS[name].title
        parts.append(
            f'<rect class="s{series}" x="{x}" y="28" width="12" height="12"/>'
            f'<text x="{x + 17}" y="38">{escape(title)}</text>'
        )
        x += 40 + 7 * len(title)
    return "".join(parts)


def _panel(model: str, lines: Sequence[Line], left: float) -> str:
    bottom = _TOP + _FULL_HEIGHT
    parts = [f'<text class="name" x="{left}" y="{_TOP - 38}">{escape(model)}</text>']
    for percent in (0, 25, 50, 75, 100):
        y = bottom - percent / 100 * _FULL_HEIGHT
        parts.append(
            f'<line class="grid" x1="{left}" x2="{left + _PANEL_WIDTH}" y1="{y}" y2="{y}"/>'
            f'<text class="soft end" x="{left - 6}" y="{y + 4}">{percent} %</text>'
        )
    sizes = [(size, list(group)) for size, group in groupby(lines, key=lambda it: it.candidates)]
    room = _PANEL_WIDTH / len(sizes)
    for place, (size, of_size) in enumerate(sizes):
        parts.append(_bars(of_size, left + place * room, room))
        center = left + (place + 0.5) * room
        parts.append(f'<text class="soft middle" x="{center}" y="{bottom + 20}">N = {size}</text>')
    return "".join(parts)


def _bars(lines: Sequence[Line], left: float, room: float) -> str:
    wide = (room - 20) / len(lines)
    parts = []
    for series, line in enumerate(lines):
        cpu = line.together.server_cpu_ms
        high = cpu / lines[0].together.server_cpu_ms * _FULL_HEIGHT
        x, y = left + 10 + series * wide, _TOP + _FULL_HEIGHT - high
        text = milliseconds(cpu)
        parts.append(
            f'<rect class="s{series}" x="{x + 1:.1f}" y="{y:.1f}" width="{wide - 2:.1f}" '
            f'height="{high:.1f}"><title>{escape(FORMATS[line.format].title)}: {text} ms'
            f"</title></rect>"
            f'<text class="value middle" x="{x + wide / 2:.1f}" y="{y - 4:.1f}">{text}</text>'
        )
    return "".join(parts)
