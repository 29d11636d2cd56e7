"""The page of a comparison, and what its report says, of made-up answers."""

import json
import re
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import pytest
from colcast.loadtest.compare.agreement import agreement
from colcast.loadtest.compare.page import render
from colcast.loadtest.compare.report import CompareReport, Limits
from colcast.loadtest.measure.recording import figures_of

from .reports import recording
from .test_agreement import REQUEST, answer, refused


def report(**limits: float) -> CompareReport:
    """Output `buy` is equal, `click` by up to 0.5 and a NaN apart; B refuses a request."""
    ramp = np.linspace(0.0, 1.0, 20, dtype=np.float32)
    nan, apart = ramp.copy(), ramp.copy()
    nan[3], apart[7] = np.nan, ramp[7] + 0.5
    answers = [(answer(click=ramp, buy=ramp), answer(click=b, buy=ramp)) for b in (nan, apart)]
    answers.append((answer(click=ramp, buy=ramp), refused("INTERNAL", "no <b>")))
    settings = {"command": "colcast compare <&>", "model": "movies"}
    figures = [figures_of(recording(0, 8.0, 1000)), figures_of(recording(1, 2.0, 100))]
    sides = ("stock:8500, example", "colcast:8500, late")
    found = agreement([REQUEST] * len(answers), answers)
    return CompareReport(settings, sides, found, figures, Limits(**limits), "a test machine")


def test_the_json_has_no_nan_and_says_what_is_infinite():
    values = json.loads(json.dumps(report().as_json(), allow_nan=False))
    click = next(one for one in values["outputs"] if one["name"] == "click")
    largest = click["largest_difference"]
    assert (largest["difference"], largest["b"]) == (None, "NaN")
    assert (largest["request"], largest["candidate"]) == (0, 3)
    assert click["nan"] == {"A": 0, "B": 1}


def test_the_headline_names_the_output_that_differs_most_and_the_cost():
    told = report().headline
    assert told.startswith("click: largest difference infinite (request 0, candidate 3: 0.157895 ")
    assert "B takes 25 % of A's server CPU (2.00 against 8.00 ms)" in told


def test_equal_answers_are_said_to_be_equal():
    same = [(answer(a=[1.0, 2.0]), answer(a=[1.0, 2.0]))]
    equal = replace(report(), agreement=agreement([REQUEST], same), figures=())
    assert (equal.headline, equal.passed) == ("all 2 values are equal", True)


@pytest.mark.parametrize(
    ("limit", "passed"),
    [({"top10_overlap": 0.8}, True), ({"correlation": 0.99}, False), ({"difference": 9}, False)],
)
def test_thresholds_hold_for_every_output(limit: dict[str, Any], passed: bool):
    verdicts = {one.label: one.passed for one in report(**limit).verdicts}
    assert verdicts == {"buy": True, "click": passed}


def test_the_page_fetches_nothing_and_escapes_what_it_shows():
    values = report(difference=1e-3).as_json()
    page = render(values)
    assert not re.findall(r'(?:src|href)="(?!data:|#)|@import|url\((?!#)|<script', page)
    assert "colcast compare &lt;&amp;&gt;" in page
    for text in (*values["problems"], values["headline"]):
        assert escape(text) in page
    assert page.count("<figure>") == 4
    assert page.count("<tr>") == 3 + 3


def test_a_server_elsewhere_has_no_cpu_figure_but_a_page():
    values = report().as_json()
    values["figures"]["B"]["server_cpu_ms"] = None
    assert "not measured" in render(values)


def test_without_an_answer_there_is_a_page_that_says_so():
    none = [(refused("INTERNAL"), refused("INTERNAL"))]
    empty = replace(report(), agreement=agreement([REQUEST], none), figures=())
    assert empty.problems == ["no request is answered by both"]
    assert "no request is answered by both" in render(empty.as_json())
