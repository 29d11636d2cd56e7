"""The report: its JSON, its charts, and its page in a real browser."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from colcast.loadtest.measure.recording import milliseconds, share
from colcast.loadtest.measure.search import Found, Sla, Verdict, Window
from colcast.loadtest.report.charts import Line, line_chart
from colcast.loadtest.report.gate import Thresholds, headline, judge, junit
from colcast.loadtest.report.page import render

from .conftest import FORMATS, report


def test_the_json_has_every_figure_and_no_nan():
    values = json.loads(json.dumps(report().as_json(), allow_nan=False))
    assert [one["label"] for one in values["series"]] == list(FORMATS)
    example, _, columnar = values["series"]
    assert example["figures"]["server_cpu_ms"] == pytest.approx(8.0)
    assert columnar["figures"]["p50_ms"] < example["figures"]["p50_ms"]
    assert example["search"]["highest_rate"] == 400
    assert len(columnar["timeline"]) == 60


def test_wrong_answers_are_a_problem_that_names_them():
    (problem,) = report(wrong=3).problems
    assert problem == (
        "columnar: 3 of 200 checked answers differ from those before the load, by up to 0.25"
    )


def test_errors_and_late_sends_are_noted():
    broken = report(errors=7)
    late = broken.results[1].recording
    late.calls = [call._replace(sent=call.due + 0.05) for call in late.calls]
    errors, lateness = broken.notes
    assert (
        errors == "example: 7 RESOURCE_EXHAUSTED; the first: RESOURCE_EXHAUSTED: the queue is full"
    )
    assert lateness.startswith("repeated: the load generator could not keep up: 1 % of its sends")


def test_an_unconfirmed_rate_is_never_claimed():
    doubtful = report()
    assert doubtful.problems == []
    again = (Window(1000, 31.0, Verdict.MISSES), Window(900, np.inf, Verdict.MISSES))
    search = doubtful.results[2].found
    assert search
    doubtful.results[2].found = replace(search, again=again, confirmed=False)
    (problem,) = doubtful.problems
    assert problem.startswith(
        "columnar: no rate is confirmed. 1,000 per second held in the search, but measured again, "
        "p95 was 31.0 ms at 1,000, a call that failed at 900 per second, above the target of 25 "
        "ms. Longer windows (--seconds), "
    )
    values = doubtful.as_json()
    assert values["headline"] is None
    assert values["series"][2]["search"]["highest_rate"] is None
    assert 'class="headline"' not in render(values)


def test_a_search_without_a_rate_is_a_problem():
    hopeless = report()
    windows = (Window(50, 90.0, Verdict.MISSES), Window(1.5, 80.0, Verdict.MISSES))
    hopeless.results[0].found = Found(0.0, windows, False)
    assert hopeless.problems == ["example: no rate meets p95 <= 25 ms, not even 1.5 per second"]


def test_a_rate_limited_by_the_generator_is_a_lower_bound():
    limited = report()
    search = limited.results[2].found
    assert search
    limited.results[2].found = replace(search, generator_limited=True)
    assert limited.problems == []
    assert limited.as_json()["headline"] is None
    assert "<td>≥ 1,000</td>" in render(limited.as_json())


def test_the_headline_names_the_best_format_not_the_last():
    compared = report(with_search=False)
    compared.results = [compared.results[place] for place in (0, 2, 1)]
    found = headline(compared.results)
    assert found
    assert (found.best, found.first) == ("columnar", "example")
    assert str(found).startswith(
        "columnar against example: 38 % of the server CPU (3.00 against 8.00"
    )


def test_latencies_of_a_late_generator_are_not_in_the_headline():
    compared = report(with_search=False)
    assert "95th percentile" in str(headline(compared.results))
    late = compared.results[-1].recording
    late.calls = [call._replace(due=call.due - 1) for call in late.calls]
    found = str(headline(compared.results))
    assert "server CPU" in found
    assert "95th percentile" not in found


def test_a_search_is_headed_by_the_highest_confirmed_rate_and_wrong_scores_win_nothing():
    found = headline(report().results)
    assert found
    assert found.gains[0].values == "1,000 against 400 requests per second"
    found = headline(report(wrong=3).results)
    assert found
    assert found.best == "repeated"


def test_calls_refused_under_load_are_refusals_and_win_nothing():
    """A server that joins several users' one-row requests into one run answers with this error."""
    refusing = report(with_search=False)
    late = refusing.results[2].recording
    late.calls = [
        call._replace(code="INVALID_ARGUMENT") if number % 3 else call
        for number, call in enumerate(late.calls)
    ]
    late.first_error = "INVALID_ARGUMENT: input user_age has 4 rows, expected 1"
    (problem,) = refusing.problems
    assert problem.startswith(
        "columnar: 1,333 of 2,000 calls refused under load, INVALID_ARGUMENT: input user_age has 4 "
        "rows, expected 1. Sent alone, each request was answered: "
    )
    found = headline(refusing.results)
    assert found
    assert found.best == "repeated"


def test_the_page_fetches_nothing_and_says_what_was_not_measured():
    values = report().as_json()
    for one in values["series"]:
        one["figures"]["server_cpu_ms"] = None
    page = render(values)
    assert "not measured" in page
    assert not re.findall(r'(?:src|href)="(?!data:|#)|@import|url\((?!#)|<script', page)


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("needs chromium (Debian package chromium)")
    return found


def browse(chromium: str, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += [f"--user-data-dir={page.parent}/profile", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.parametrize("with_search", [True, False])
def test_a_browser_draws_every_chart_without_errors(
    chromium: str, tmp_path: Path, with_search: bool
):
    page = tmp_path / "report.html"
    page.write_text(render(report(with_search=with_search).as_json()))
    seen = browse(chromium, page, "--dump-dom", "--virtual-time-budget=2000")
    assert "CONSOLE" not in seen.stderr
    figures = re.findall(r"<figure>.*?</figure>", seen.stdout, re.S)
    assert len(figures) == (5 if with_search else 4)
    for figure in figures:
        assert "var(--s0)" in figure, figure[:200]
    assert seen.stdout.count("<tr>") == 1 + len(FORMATS)


NAN = float("nan")


def test_unmeasured_figures_are_a_dash():
    assert (milliseconds(NAN), share(NAN, 1.0), share(1.0, NAN), share(1.0, 0.0)) == ("-",) * 4


def test_a_point_that_was_not_measured_is_a_gap():
    values = [(0, 1.0), (1, 2.0), (2, NAN), (3, 3.0), (4, 3.0)]
    chart = line_chart([Line("a", 0, values)], x_title="x", y_title="y")
    (path,) = re.findall(r'id="a".*?<path [^>]*\bd="([^"]+)"', chart, re.DOTALL)
    assert path.count("M") == 2
    assert "nan" not in chart


def test_a_threshold_is_judged_for_every_series():
    results = report(errors=3, with_search=False).results
    thresholds = Thresholds((Sla(95, 12.0),), max_errors=0)
    verdicts = judge(results, thresholds)
    assert [(it.series, it.threshold, it.passed) for it in verdicts] == [
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
    assert missed.measured.endswith("ms; the load generator was late")


def test_junit_has_a_case_per_threshold_and_one_for_the_answers():
    results = report(errors=3, with_search=False).results
    verdicts = judge(results, Thresholds(max_errors=2))
    suite = ElementTree.fromstring(junit(verdicts, ["columnar: 3 of 200 checked answers differ"]))
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
    messages = [failure.get("message") for failure in suite.iter("failure")]
    assert messages == ["3", "columnar: 3 of 200 checked answers differ"]
