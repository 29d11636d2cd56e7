"""Measures the selected rows, prints their table, and writes the table, figures and charts."""

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from colcast.bench.serving import Effort, timed_groups
from colcast.bench.table import groups, selected
from colcast.bench.turns import Line, head, measure
from colcast.loadtest.measure.recording import finite, milliseconds
from colcast.loadtest.report.charts import Panel, grouped_bars, standalone
from colcast.loadtest.report.output import make_folder
from colcast.loadtest.report.report import machine
from rich.console import Console


def run(names: Sequence[str], effort: Effort, folder: Path, console: Console) -> list[Line]:
    """Measures one group after another, and adds each to the table.

    Raises:
      ValueError: there are no such rows, or calls failed.
      RuntimeError: a server refuses a request, or does not start.
      OSError: a file cannot be written.
    """
    rows = selected(names)
    make_folder(folder)
    document: list[str] = []

    def tell(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)
        document.append(line)

    for line in (machine(), "", *head()):
        tell(line)
    lines: list[Line] = []
    for _, variants in groups(rows):
        with timed_groups(variants, effort) as ready:
            for name, timed in ready:
                lines += measure(name, timed, effort.rounds, tell)
    (folder / "bench.md").write_text("\n".join([*document, ""]))
    values = finite({"machine": machine(), "lines": lines})
    (folder / "bench.json").write_text(json.dumps(values, indent=1, allow_nan=False))
    for part, of_part in groupby(lines, lambda line: line.group.partition("/")[0]):
        (folder / f"{part}.svg").write_text(chart(list(of_part)))
    return lines


def chart(lines: Sequence[Line]) -> str:
    """Draws CPU per request relative to the group's first variant, as bars labeled in milliseconds.

    A line's group is "part/model, N = 20"; every group has the same variants.
    """
    panels = []
    for model, of_model in groupby(lines, lambda line: line.group.partition(",")[0]):
        groups = [list(of_it) for _, of_it in groupby(of_model, lambda line: line.group)]
        panels.append(
            Panel(
                title=model.partition("/")[2],
                groups=[of_it[0].group.partition(", ")[2] for of_it in groups],
                values=[[line.share[0] for line in of_it] for of_it in groups],
                texts=[[milliseconds(line.cpu_ms) for line in of_it] for of_it in groups],
            )
        )
    titles = list(dict.fromkeys(line.title for line in lines))
    heading = f"CPU per request: {titles[0]} is 100 %, milliseconds above the bars"
    return standalone(grouped_bars(panels, titles, heading))
