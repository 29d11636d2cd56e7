"""The loop and the table of benches."""

import json
import os
import time

import pytest
from colcast.client import encode_predict_request
from colcast.loadtest.output import finite
from colcast.loadtest.recording import Recording
from colcast.loadtest.variants import (
    CPU,
    ERRORS,
    Column,
    Variant,
    asking,
    for_seconds,
    measure_variants,
    one_by_one,
    other,
    predicting,
)
from colcast.server import ServerFailedError, ServerProcess


def busy(milliseconds: float) -> None:
    until = time.process_time() + milliseconds / 1000
    while time.process_time() < until:
        pass


def counted(title: str, figures: list[float], order: list[str]) -> Variant:
    def turn(number: int) -> float:
        order.append(f"{title} {number}")
        return figures[number] if number >= 0 else float("nan")

    return Variant(title, turn)


FIGURE = Column("figure", float, ".1f", compared=True)


def test_variants_take_turns_and_the_warm_up_does_not_count():
    order: list[str] = []
    variants = [counted("a", [2, 4, 100], order), counted("b", [1, 4, 25], order)]
    lines = measure_variants([("of one run", variants)], 3, [FIGURE], lambda _: None)
    assert order == ["a -1", "b -1", "a 0", "b 0", "b 1", "a 1", "a 2", "b 2"]
    assert [line.figures["figure"] for line in lines] == [4, 4]
    assert lines[1].ratios["figure"] == (0.5, 0.25, 1)


def test_the_table_is_markdown_and_tells_what_is_known_of_a_figure():
    variants = [
        Variant("slow", lambda _: Recording(others={"found": 0.5})),
        Variant("unknown", lambda _: Recording()),
    ]
    told: list[str] = []
    columns = [other("found", ".0%"), ERRORS]
    measure_variants([("here", variants), ("there", variants[:1])], 2, columns, told.append)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in told[1:]]
    assert cells == [
        ["", "", "found", "errors"],
        ["---", "---", "---:", "---:"],
        ["here", "slow", "50%", "0"],
        ["here", "unknown", "-", "0"],
        ["there", "slow", "50%", "0"],
    ]


def test_a_group_is_measured_while_what_it_needs_is_there():
    open_: list[str] = []

    def groups():
        for name in "ab":
            open_.append(name)
            yield name, [Variant("", lambda _: float(open_ == [name]))]  # noqa: B023
            open_.clear()

    lines = measure_variants(groups(), 1, [FIGURE], lambda _: None)
    assert [line.figures["figure"] for line in lines] == [1, 1]


def test_cpu_is_per_call():
    few, many = (
        asking(title, lambda: busy(10), calls, os.getpid(), size=7).turn(0)
        for title, calls in (("few", 2), ("many", 4))
    )
    assert (len(few.calls), len(many.calls)) == (2, 4)
    assert CPU.of(few) >= 10
    assert CPU.of(many) >= 10
    assert few.bytes_per_request == 7


def test_calls_end_after_their_time_but_not_before_their_number():
    assert len(one_by_one(lambda: None, for_seconds(0, at_least=5)).calls) == 5


def test_requests_go_round_and_a_refusal_is_told(served: ServerProcess):
    refused = encode_predict_request("nobody", "serving_default", {})
    with pytest.raises(ValueError, match=r"5 calls failed.*nobody"):
        predicting("refused", served, [refused, refused], calls=5).turn(0)


def test_another_build_serves(tmp_path):
    other_build = tmp_path / "colcast_model_server"
    other_build.write_text("#!/bin/sh\necho other build >&2\n")
    other_build.chmod(0o755)
    with pytest.raises(ServerFailedError, match="other build"):
        ServerProcess("m", tmp_path, executable=other_build).__enter__()


def test_a_figure_that_nobody_measured_is_null_in_json():
    variants = [Variant("it", lambda _: Recording())]
    lines = measure_variants(
        [("none", variants)], 1, [other("hits", compared=True)], lambda _: None
    )
    assert json.loads(json.dumps(finite(lines), allow_nan=False)) == [
        {
            "group": "none",
            "title": "it",
            "figures": {"hits": None},
            "ratios": {"hits": [None, None, None]},
        }
    ]
