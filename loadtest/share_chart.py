"""Server CPU by format as shares of the first format's, a panel per model, as an SVG file."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from colcast.loadtest.charts import Panel, grouped_bars, standalone
from colcast.loadtest.figures import milliseconds
from colcast.loadtest.formats import FORMATS
from colcast.loadtest.side_by_side import Line


def share_chart(models: Mapping[str, Sequence[Line]]) -> str:
    """Bars of CPU per request, each size's first format being 100 %; milliseconds above them.

    Args:
      models: name -> lines as `side_by_side` gives them, every model in the same formats.
    """
    formats = list(dict.fromkeys(line.format for lines in models.values() for line in lines))
    titles = [FORMATS[name].title for name in formats]
    heading = f"Server CPU per request: {titles[0]} is 100 %, milliseconds above the bars"
    panels = [_panel(model, lines) for model, lines in models.items()]
    return standalone(grouped_bars(panels, titles, heading))


def _panel(model: str, lines: Sequence[Line]) -> Panel:
    sizes = {size: list(group) for size, group in groupby(lines, key=lambda it: it.candidates)}
    cpu = [[line.together.server_cpu_ms for line in group] for group in sizes.values()]
    return Panel(
        title=model,
        groups=[f"N = {size}" for size in sizes],
        values=[[each / of_size[0] for each in of_size] for of_size in cpu],
        texts=[[milliseconds(each) for each in of_size] for of_size in cpu],
    )
