"""The chart for documents: bars as high as the shares they stand for."""

from dataclasses import replace

import pytest
from colcast.loadtest.share_chart import share_chart
from colcast.loadtest.side_by_side import format_costs

from .measured import LINES
from .test_charts import outline, texts


def height(svg: str, name: str) -> float:
    up = [y for _, y in outline(svg, name)]
    return max(up) - min(up)


def test_a_quarter_of_the_cpu_is_a_quarter_of_the_height():
    svg = share_chart({"wide": format_costs(LINES)})
    whole, quarter = height(svg, "wide tf.Example 8.00"), height(svg, "wide user late 2.00")
    assert quarter == pytest.approx(whole / 4, abs=0.1)


def test_every_model_and_size_is_named():
    others = [replace(line, candidates=20) for line in LINES]
    svg = share_chart({"wide": format_costs(LINES), "a<b": format_costs(others)})
    assert {"wide", "a<b", "N = 500", "N = 20", "tf.Example", "user late"} <= set(texts(svg))


def test_nothing_is_loaded():
    svg = share_chart({"wide": format_costs(LINES)})
    for namespace in ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"):
        svg = svg.replace(namespace, "")
    assert "http" not in svg
