"""The status page in a real browser."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tensorflow as tf
from colcast.server import ServerProcess

from .browser import Page, browser
from .metrics_page import status

NAME = "<b>ranker</b>"  # as hostile as a model's name can be
COLUMN = "<img src=x onerror=alert(1)>"


class Late(tf.Module):
    """A signature whose user column is declared with one row."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([1], tf.float32, "user"),
            tf.TensorSpec([None, 3], tf.float32, "item"),
        ]
    )
    def score(self, user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
        """One score a row of item."""
        return {COLUMN: user + tf.reduce_sum(item, axis=1)}


class Served(NamedTuple):
    """The server, its page's address, and how to send it one request of three rows."""

    server: ServerProcess
    url: str
    predict: Callable[[], Any]


@pytest.fixture(scope="module")
def late_base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp("late")
    module = Late()
    tf.saved_model.save(module, str(base_path / "12"), signatures={"late": module.score})
    return base_path


@pytest.fixture
def served(
    late_base_path: Path, monitoring: list[str], connect: Callable[[str], Any]
) -> Iterator[Served]:
    with ServerProcess(NAME, late_base_path, monitoring) as server:
        stubs = connect(server.target)
        inputs = {"user": [1.0], "item": [[0.0, 0.0, 0.0]] * 3}

        def predict() -> Any:
            return stubs.predict(inputs, name=NAME, signature_name="late")

        yield Served(server, f"http://{server.rest_target}/", predict)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


def open_status(page: Page, url: str) -> None:
    page.open(url)
    assert page.wait_for("document.querySelector('#refreshed').innerText !== ''")


def text(page: Page, selector: str) -> str:
    return str(page.evaluate(f"document.querySelector('{selector}').innerText"))


def traffic(page: Page) -> list[str]:
    """The cells of the only row."""
    cells = page.evaluate("[...document.querySelectorAll('#traffic td')].map(td => td.innerText)")
    assert isinstance(cells, list)
    return cells


def test_it_shows_what_is_served_and_what_was_asked(page, served):
    for _ in range(7):
        served.predict()
    open_status(page, served.url)
    assert "colcast_model_server" in text(page, "#server")
    model, signature, api, *_, rows, _, answered, errors = traffic(page)
    assert (model, signature, api) == (NAME, "late", "Predict")
    assert (rows, answered, errors) == ("3", "7", "0")
    versions = text(page, "#models tbody")
    assert "12" in versions
    assert "serving" in versions
    page.evaluate("document.querySelector('details').open = true")
    columns = text(page, "details table")
    assert "user\tfloat\t[1]\t1: the user" in columns
    assert "item\tfloat\t[N, 3]\t1 or N" in columns


def test_it_shows_how_long_short_and_long_requests_wait(page, served):
    def lanes() -> list[str]:
        open_status(page, served.url)
        tiles = "[...document.querySelectorAll('.tile')]"
        tile = f"{tiles}.find(tile => tile.innerText.includes('wait for a worker'))"
        lines = f"[...{tile}.querySelectorAll('p')].map(p => p.innerText)"
        return list(page.evaluate(lines))

    assert lanes() == ["–", "long requests –, since the start"]
    served.predict()
    short, long = lanes()
    assert short.endswith(("µs", "ms"))
    assert long == "long requests –, since the start"


def test_figures_move_without_a_reload(page, served):
    served.predict()
    open_status(page, served.url)
    page.evaluate("window.stillTheSamePage = true")
    page.evaluate("document.querySelector('details').open = true")
    answered = "document.querySelector('#traffic tbody tr').cells[10].innerText"
    assert page.evaluate(answered) == "1"
    page.requested.clear()
    for _ in range(20):
        served.predict()
    assert page.wait_for(f"{answered} === '21'")
    # The last second's figures come with the sample of the next one.
    rate = "Number(document.querySelector('#traffic tbody tr').cells[3].innerText)"
    assert page.wait_for(f"{rate} > 0")
    assert "ms" in traffic(page)[7] or "µs" in traffic(page)[7]
    assert page.evaluate("window.stillTheSamePage === true")
    assert page.evaluate("document.querySelector('details').open")
    assert page.complaints == []
    assert set(page.requested) == {served.url + "status.json"}


def test_names_stay_text(page, served):
    open_status(page, served.url)
    assert page.evaluate("document.querySelectorAll('main b').length") == 1  # of the signature
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert NAME in text(page, "#models")
    page.evaluate("document.querySelector('details').open = true")
    assert COLUMN in text(page, "details")
    assert page.complaints == []


def test_nothing_comes_from_elsewhere(page, served):
    open_status(page, served.url)
    assert len(page.requested) >= 5
    assert all(url.startswith((served.url, "data:")) for url in page.requested)
    with urllib.request.urlopen(served.url, timeout=120) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_server_that_is_gone_is_told_from_an_idle_one(page, served):
    served.predict()
    open_status(page, served.url)
    served.server.kill()
    assert page.wait_for("document.body.classList.contains('stale')")
    assert "does not answer" in text(page, "#refreshed")
    assert traffic(page)[0] == NAME  # its last figures are still there


def test_without_scripts_it_says_where_the_figures_are(served):
    served.predict()
    with urllib.request.urlopen(served.url, timeout=120) as answer:
        assert '<noscript><p>This page needs JavaScript; <a href="status.json">' in (
            answer.read().decode()
        )
    figures = status(served.server)
    (traffic,) = figures["traffic"]
    assert (traffic["model"], traffic["signature"], traffic["api"]) == (NAME, "late", "Predict")
    assert (traffic["answered"], traffic["errors"], traffic["rows"]) == (1, 0, 3)
    assert figures["total"]["runs"] == 1
    assert "callers" not in figures
    assert "shadows" not in figures


def drawn(page: Page, figures: dict[str, Any], section: str) -> str:
    """What a section shows of other figures than the server's, and nothing that is not text."""
    changed = json.dumps(json.dumps(figures))
    page.evaluate(f"drawAll({{...window.figures, ...JSON.parse({changed})}})")
    markup = f"document.querySelectorAll('#{section} :is(script, img)').length"
    assert page.evaluate(markup) == 0
    return text(page, f"#{section}")


@pytest.fixture
def page_of_figures(page: Page, served: Served) -> Page:
    """The page, which no longer asks the server: its figures are `window.figures`."""
    open_status(page, served.url)
    page.evaluate(
        "fetch('status.json').then(answer => answer.json()).then(figures => {"
        " window.figures = figures; globalThis.fetch = () => new Promise(() => {}); })"
    )
    return page


HOSTILE = "<script>alert(1)</script>" + COLUMN


def test_every_section_draws_text(page_of_figures):
    page = page_of_figures
    caller = {"caller": HOSTILE, "requests": 4567, "rows": 3, "run_seconds": 303}
    caller["refused"] = {"in_flight": 1, "rows_per_second": 2, "burst": 0}
    callers = drawn(page, {"callers": [caller]}, "callers")
    assert f"{HOSTILE}\t4.57k\t3\t5 min 3 s\t1\t2\t0" in callers

    names = {"model": HOSTILE, "version": "9007199254740993", "signature": HOSTILE}
    store = {"store": HOSTILE, "found": 2, "computed": 1, "evicted": 0, "states": 1, "bytes": 1500}
    states = drawn(page, {"states": [{**names, **store}]}, "states")
    assert f"9007199254740993\t{HOSTILE}\t{HOSTILE}\t66 %\t2\t1\t0\t1\t1.5 kB" in states

    table = {"model": HOSTILE, "key": HOSTILE, "version": "3", "rows": 10, "bytes": 980}
    table |= {"age_seconds": 7800, "deltas": 0, "oldest_delta_age_seconds": 0}
    table |= {"lookups": 1, "unknown_keys": 2, "error": HOSTILE}
    items = drawn(page, {"item_tables": [table]}, "items")
    assert f"{HOSTILE}\t{HOSTILE}\t3\t10\t980 B\t2 h 10 min\t0\t–\t1\t2\t{HOSTILE}" in items

    version: dict[str, Any] = {"model": HOSTILE, "live": "3", "shadow": "4", "compared": 2}
    version |= {"other_form": 0, "failed": 1, "last_error": HOSTILE, "outputs": []}
    output = {"output": HOSTILE, "largest_difference": "Infinity"}
    compared = {**version, "outputs": [{**output, "same_top_10": 1, "other_top_10": 1}]}
    not_run = {"model": HOSTILE, "reasons": {"busy": 1, "queue_full": 0}}
    figures = {"shadows": {"versions": [version, compared], "not_run": [not_run]}}
    shadows = drawn(page, figures, "shadows")
    assert f"3\t4\t2\t0\t1\t–\t–\t–\t{HOSTILE}" in shadows
    assert f"3\t4\t2\t0\t1\t{HOSTILE}\tinfinite\t50 %\t{HOSTILE}" in shadows
    assert f"{HOSTILE}: not run: 1 busy" in shadows
    assert page.complaints == []


def test_versions_that_do_not_serve(page_of_figures):
    def version(state: str, code: str = "OK", error: str = "") -> dict[str, Any]:
        facts = {"version": "3", "path": "/m/3", "labels": [HOSTILE], "signatures": []}
        return facts | {"state": state, "error_code": code, "error": error}

    states = {"START": "waiting", "LOADING": "loading", "UNLOADING": "unloading", "END": "unloaded"}
    versions = [version(state) for state in states] + [version("END", "INTERNAL", HOSTILE)]
    models = [
        {"name": "m", "base_path": "/m", "versions": versions},
        {"name": HOSTILE, "base_path": "/none", "versions": []},
    ]
    shown = drawn(page_of_figures, {"models": models}, "models")
    for badge in states.values():
        assert f"m\t3\t{badge}\t{HOSTILE}" in shown
    assert f"m\t3\tfailed\t{HOSTILE}\t/m/3\n\n{HOSTILE}" in shown
    assert f"{HOSTILE}\tno version found yet\t/none" in shown
    assert text(page_of_figures, "#signatures") == "No version serves."


def test_figures_have_three_digits_and_units(page, served):
    open_status(page, served.url)
    expected = {
        "countText(0)": "0",
        "countText(0.25)": "0.25",
        "countText(12.34)": "12.3",
        "countText(100)": "100",
        "countText(999.6)": "1k",
        "countText(1234567)": "1.23M",
        "countText(9e18)": "9000000T",
        "bytesText(1500)": "1.5 kB",
        "bytesText(2.31e9)": "2.31 GB",
        "latencyText(85)": "85 µs",
        "latencyText(1240)": "1.24 ms",
        "latencyText(1.5e9)": "1500 s",
        "latencyText(null)": "–",
        "durationText(0)": "0 s",
        "durationText(12.9)": "12 s",
        "durationText(303)": "5 min 3 s",
        "durationText(7800)": "2 h 10 min",
        f"durationText({3 * 86400 + 4 * 3600 + 59})": "3 d 4 h",
        "shareText(0, 0)": "–",
        "shareText(1, 2)": "33.3 %",
        "differenceText(0.123456)": "0.123",
        "shapeText([-1, 3, -1])": "[N, 3, ?]",
        "shapeText([])": "[]",
        "shapeText(null)": "any",
        "rowsText(null)": "1 or N",
        "rowsText([])": "one value",
        "rowsText([1, 2])": "1: the user",
        "rowsText([2])": "as declared",
        "typeText('DT_INT64')": "int64",
    }
    assert {call: page.evaluate(call) for call in expected} == expected


@pytest.mark.parametrize("width", [1200, 390])
def test_it_fits_its_window(page, served, width):
    served.predict()
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    open_status(page, served.url)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
