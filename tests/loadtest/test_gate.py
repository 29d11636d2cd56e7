"""Thresholds: kept or missed, in words, in JSON and as JUnit."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from colcast.cli.main import main
from colcast.loadtest.measure.search import Sla
from colcast.loadtest.report.gate import Thresholds, judge, junit
from colcast.loadtest.report.page import render
from colcast.server import ServerProcess

from .reports import report


def test_a_threshold_is_judged_for_every_series():
    results = report(errors=3, with_search=False).results
    thresholds = Thresholds((Sla(95, 12.0),), max_errors=0)
    verdicts = judge(results, thresholds)
    assert [(it.label, it.threshold, it.passed) for it in verdicts] == [
        ("example", "p95 <= 12 ms", False),
        ("example", "errors <= 0", False),
        ("repeated", "p95 <= 12 ms", True),
        ("repeated", "errors <= 0", True),
        ("columnar", "p95 <= 12 ms", True),
        ("columnar", "errors <= 0", True),
    ]
    assert str(verdicts[1]) == "example: errors <= 0: failed, 3"


def test_a_late_generator_is_named_where_a_threshold_is_missed():
    results = report(with_search=False).results
    recording = results[0].recording
    recording.calls = [call._replace(sent=call.due + 0.05) for call in recording.calls]
    (missed, _, _) = judge(results, Thresholds((Sla(95, 1.0),)))
    assert missed.measured.endswith("ms; the load generator was late itself")


def test_failed_calls_never_came_back():
    results = report(errors=1500, with_search=False).results
    missed = judge(results[:1], Thresholds((Sla(95, 1000.0),)))
    assert [it.measured for it in missed] == ["too many calls failed"]


def test_junit_has_a_case_per_threshold_and_one_for_the_answers():
    results = report(errors=3, with_search=False).results
    verdicts = judge(results, Thresholds(max_errors=2))
    suite = ElementTree.fromstring(junit(verdicts, ["columnar: 3 of 200 checked answers differ"]))
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
    messages = [failure.get("message") for failure in suite.iter("failure")]
    assert messages == ["3", "columnar: 3 of 200 checked answers differ"]


def test_the_report_and_its_page_have_the_verdicts():
    judged = replace(report(with_search=False), thresholds=Thresholds((Sla(95, 12.0),)))
    values = judged.as_json()
    assert values["passed"] is False
    assert [it["passed"] for it in values["thresholds"]] == [False, True, True]
    assert 'class="problem">example: p95 &lt;= 12 ms: failed' in render(values)


@pytest.mark.parametrize(("limit", "code"), [("10s", 0), ("0.001ms", 1)])
def test_a_gate_passes_or_fails(served: ServerProcess, tmp_path: Path, limit: str, code: int):
    command = ["loadtest", "--target", served.target, "--model", "small", "--formats", "columnar"]
    command += ["--rate", "50", "--windows", "1", "--seconds", "0.5", "--distinct", "3"]
    command += ["--sla-p95", limit, "--max-errors", "0", "--timeout", "30"]
    junit_file = tmp_path / "result.xml"
    assert main([*command, "--output", str(tmp_path), "--junit", str(junit_file)]) == code
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["passed"] == (code == 0)
    assert ElementTree.parse(junit_file).getroot().get("failures") == f"{code}"
