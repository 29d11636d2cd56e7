"""Servers with different flags, sent the same requests in turn."""

from collections.abc import Sequence
from pathlib import Path

from colcast.loadtest.formats import RequestData
from colcast.loadtest.server_variants import (
    Effort,
    ServerVariant,
    compare_servers,
    warm_up_calls,
)
from colcast.zoo import wide

from .conftest import SMALL


def requests(size: int, count: int) -> Sequence[RequestData]:
    drawn = wide.requests(SMALL, size, seed=size)
    return [RequestData(size, *next(drawn)) for _ in range(count)]


def test_every_variant_answers_as_the_first_does(exported: Path):
    variants = [
        ServerVariant("tf.Example", "example"),
        ServerVariant("two workers", "late", ("--num_workers=2",)),
        ServerVariant("again and again", "late", cached=True),
    ]
    told: list[str] = []
    lines, difference = compare_servers(
        "small", exported, variants, requests, [3, 9], Effort(2, 2, 4), told.append
    )
    titles = [variant.title for variant in variants]
    assert [(line.group, line.title) for line in lines] == [
        (f"small, N = {size}", title) for size in (3, 9) for title in titles
    ]
    assert all(line.figures["CPU ms"] > 0 for line in lines)
    assert 0 < difference < 1e-5
    assert sum(title in line for line in told for title in titles) == len(lines)


def test_requests_that_are_not_known_are_enough_for_every_turn():
    effort = Effort(rounds=3, calls=5)
    assert effort.distinct(500) - warm_up_calls(500) > 3 * 5
