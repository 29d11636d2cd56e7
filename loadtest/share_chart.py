"""Server CPU as shares of the first format's or variant's, a panel per model, as an SVG file."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter

from colcast.loadtest.charts import Panel, grouped_bars, standalone
from colcast.loadtest.figures import milliseconds

Cost = tuple[str, str, float]  # the group, what was measured in it, milliseconds of CPU per request


def share_chart(models: Mapping[str, Iterable[Cost]]) -> str:
    """Bars of CPU per request, the first of each group being 100 %; milliseconds above them.

    Args:
      models: name -> what it costs, group by group; every group has the same members.
    """
    titles: list[str] = []
    panels = []
    for model, costs in models.items():
        groups = {name: list(of_it) for name, of_it in groupby(costs, itemgetter(0))}
        titles = [title for _, title, _ in next(iter(groups.values()))]
        cpu = [[it[2] for it in of_it] for of_it in groups.values()]
        panels.append(
            Panel(
                title=model,
                groups=list(groups),
                values=[[each / of_group[0] for each in of_group] for of_group in cpu],
                texts=[[milliseconds(each) for each in of_group] for of_group in cpu],
            )
        )
    heading = f"Server CPU per request: {titles[0]} is 100 %, milliseconds above the bars"
    return standalone(grouped_bars(panels, titles, heading))
