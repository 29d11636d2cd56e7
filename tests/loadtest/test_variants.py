"""Servers with different flags, sent the same requests in turn."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from colcast.loadtest.formats import RequestData
from colcast.loadtest.variants import (
    Effort,
    Row,
    Variant,
    compare_variants,
    variants_chart,
    variants_markdown,
    warm_up_calls,
)
from colcast.zoo import wide

from .conftest import SMALL
from .test_charts import outline, texts


def requests(size: int, count: int) -> Sequence[RequestData]:
    drawn = wide.requests(SMALL, size, seed=size)
    return [RequestData(size, *next(drawn)) for _ in range(count)]


def test_every_variant_answers_as_the_first_does(exported: Path):
    variants = [
        Variant("tf.Example", "example"),
        Variant("two workers", "late", ("--num_workers=2",)),
        Variant("again and again", "late", known=True),
    ]
    effort, done = Effort(clients=2, rounds=2, calls=4), []
    rows = compare_variants(
        "small", exported, variants, requests, [3, 9], effort, lambda: done.append(1)
    )
    titles = [variant.title for variant in variants]
    assert [(row.candidates, row.variant) for row in rows] == [
        (size, title) for size in (3, 9) for title in titles
    ]
    assert len(done) == 2 * 3 * 2
    for row in rows:
        assert (row.calls, row.errors) == (8, 0)
        assert row.cpu_ms > 0
        assert row.difference < 1e-5


def test_requests_that_are_not_known_are_enough_for_every_window():
    effort = Effort(rounds=3, calls=5)
    assert effort.distinct(500) - warm_up_calls(500) > 3 * 5


ROWS = [
    Row(20, "a", 4.0, 1.0, 10.0, 5, 0, 0.0),
    Row(20, "b", 1.0, 1.0, 10.0, 5, 0, 0.0),
    Row(500, "a", 8.0, 1.0, 10.0, 5, 0, 0.0),
    Row(500, "b", 4.0, 1.0, 10.0, 5, 0, 0.0),
]


def test_a_chart_has_bars_as_high_as_the_shares():
    chart = variants_chart({"wide": ROWS})
    assert {"wide", "N = 20", "N = 500", "a", "b"} <= set(texts(chart))
    whole, quarter = ([y for _, y in outline(chart, f"wide {it}")] for it in ("a 4.00", "b 1.00"))
    assert max(quarter) - min(quarter) == pytest.approx((max(whole) - min(whole)) / 4, abs=0.1)


def test_a_document_has_a_line_per_size_with_shares_of_the_first_variant():
    assert variants_markdown(ROWS).splitlines() == [
        "| N | a, CPU ms | b, CPU ms | b, share |",
        "| ---: | ---: | ---: | ---: |",
        "| 20 | 4.00 | 1.00 | 25 % |",
        "| 500 | 8.00 | 4.00 | 50 % |",
    ]
