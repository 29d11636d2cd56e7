"""Charts: marks stand where the values say."""

import re
from xml.etree import ElementTree

import pytest
from colcast.loadtest.report.charts import Bar, Line, bar_chart, histogram, line_chart, standalone

SVG = "{http://www.w3.org/2000/svg}"


def group(chart: str, name: str) -> ElementTree.Element:
    """What was drawn under a name."""
    root = ElementTree.fromstring(chart)
    return next(it for it in root.iter(f"{SVG}g") if it.get("id") == name)


def texts(chart: str) -> list[str]:
    return [it.text or "" for it in ElementTree.fromstring(chart).iter(f"{SVG}text")]


def outline(chart: str, name: str) -> list[tuple[float, float]]:
    """The corners of the first shape of that name."""
    path = next(group(chart, name).iter(f"{SVG}path")).attrib["d"]
    return [(float(x), float(y)) for x, y in re.findall(r"[ML] (\S+) (\S+)", path)]


def width(chart: str, name: str) -> float:
    across = [x for x, _ in outline(chart, name)]
    return max(across) - min(across)


def test_a_line_goes_through_its_points_from_bottom_left():
    chart = line_chart([Line("a", 0, [(0, 0), (5, 50), (10, 100)])], x_title="x", y_title="y")
    dots = [
        (float(it.attrib["x"]), float(it.attrib["y"])) for it in group(chart, "a").iter(f"{SVG}use")
    ]
    assert [x for x, _ in dots] == sorted(x for x, _ in dots)
    assert [y for _, y in dots] == sorted((y for _, y in dots), reverse=True)
    assert dots[1][0] == pytest.approx((dots[0][0] + dots[2][0]) / 2, abs=0.2)


def test_a_point_that_was_not_measured_is_a_gap():
    values = [(0, 1.0), (1, 2.0), (2, float("nan")), (3, 3.0), (4, 3.0)]
    chart = line_chart([Line("a", 0, values)], x_title="x", y_title="y")
    path = next(group(chart, "a").iter(f"{SVG}path")).attrib["d"]
    assert path.count("M") == 2
    assert "nan" not in chart


def test_a_limit_is_drawn_with_its_name():
    lines = [Line("a", 0, [(0, 1.0), (1, 2.0)])]
    chart = line_chart(lines, x_title="x", y_title="y", limit=(1.5, "p95 target 1.5 ms"))
    assert "p95 target 1.5 ms" in texts(chart)
    assert "var(--bad)" in chart


def test_bars_are_as_long_as_their_values_say():
    chart = bar_chart([Bar("a", 0, 10, "10"), Bar("b", 1, 5, "5"), Bar("c", 2, 0, "0")], "t")
    assert width(chart, "b") == pytest.approx(width(chart, "a") / 2, abs=0.1)
    assert width(chart, "c") == 0
    assert {"a", "b", "c", "10", "5", "0"} <= set(texts(chart))


def test_a_histogram_has_whole_counts():
    chart = histogram([100, 100, 200, 700], x_title="candidates", y_title="requests")
    assert "0.5" not in texts(chart)
    assert {"candidates", "requests"} <= set(texts(chart))


def test_no_chart_at_all_is_still_a_chart():
    assert texts(line_chart([], x_title="x", y_title="y"))
    assert bar_chart([], "t").startswith("<svg")


def test_colours_are_those_of_the_page_and_a_file_by_itself_has_its_own():
    chart = bar_chart([Bar("a", 3, 1, "1")], "t")
    assert "fill: var(--s3)" in chart
    assert not re.search("#[0-9a-f]{6}", chart)
    alone = standalone(chart)
    assert "--s3: #" in alone
    assert "prefers-color-scheme: dark" in alone
    ElementTree.fromstring(alone)


def test_the_same_drawing_has_the_same_bytes():
    one, two = (bar_chart([Bar("a", 0, 1, "1")], "t") for _ in range(2))
    assert one == two
