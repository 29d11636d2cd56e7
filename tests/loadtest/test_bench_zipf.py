"""The table of hit rates and its chart."""

from xml.etree import ElementTree

from colcast.loadtest.bench_zipf import Population, StoreLine, stores_chart, stores_markdown

POPULATION = Population(users=10, items=50, candidates=5, requests=60)
LINES = [
    StoreLine(0, float("nan"), float("nan"), 0.8, 0, 0, 1 << 20, 30, 0),
    StoreLine(16, 0.5, 0.9, 0.2, 1 << 20, 3 << 20, 5 << 20, 30, 0),
]


def test_a_document_has_a_line_per_size_of_the_stores():
    title, _, _, _, none, first = stores_markdown(LINES, POPULATION).splitlines()
    assert title.startswith("wide: 60 requests of 5 candidates, 10 users and 50 items by Zipf")
    assert none == "| none | - | - | 0.80 | 0.0 | 0.0 | 1.0 | 0 |"
    assert first == "| 16 | 50.0 % | 90.0 % | 0.20 | 1.0 | 3.0 | 5.0 | 0 |"


def test_a_chart_is_a_file_by_itself():
    chart = stores_chart(LINES, POPULATION)
    assert "16 MiB each" in chart
    ElementTree.fromstring(chart)
