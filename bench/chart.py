"""CPU as shares of each group's first variant: one panel per model, as an SVG file."""

from collections.abc import Sequence
from itertools import groupby

from colcast.bench.turns import Line
from colcast.loadtest.measure.figures import milliseconds
from colcast.loadtest.report.charts import Panel, grouped_bars, standalone


def chart(lines: Sequence[Line]) -> str:
    """Bars of CPU per request, the first of each group being 100 %; milliseconds above them.

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
