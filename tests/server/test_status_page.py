"""The status page and its JSON, in a real browser."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import tensorflow as tf
from colcast.server import ServerProcess

from .browser import Page, browser
from .metrics_page import status
from .servers import Stubs

NAME = "<b>ranker</b>"  # as hostile as a model name may be
COLUMN = "<img src=x onerror=alert(1)>"


class Late(tf.Module):
    """A model whose signature declares the user's column with one row."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([1], tf.float32, "user"),
            tf.TensorSpec([None, 3], tf.float32, "item"),
        ]
    )
    def score(self, user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
        return {COLUMN: user + tf.reduce_sum(item, axis=1)}


class Served(NamedTuple):
    """A server, the address of its page, and a function that sends one request of three rows."""

    server: ServerProcess
    url: str
    predict: Callable[[], Any]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, monitoring: list[str]) -> Iterator[Served]:
    base_path = tmp_path_factory.mktemp("late")
    module = Late()
    tf.saved_model.save(module, str(base_path / "12"), signatures={"late": module.score})
    inputs = {"user": [1.0], "item": [[0.0, 0.0, 0.0]] * 3}
    with ServerProcess(NAME, base_path, monitoring) as server:
        stubs = Stubs(server.target, model=NAME)

        def predict() -> Any:
            return stubs.predict(inputs, signature_name="late")

        predict()
        yield Served(server, f"http://{server.rest_target}/", predict)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


def open_status(page: Page, url: str) -> None:
    page.open(url)
    assert page.wait_for("document.querySelector('#told').innerText.startsWith('refreshed')")


def text(page: Page, selector: str) -> str:
    return str(page.evaluate(f"document.querySelector('{selector}').innerText"))


def cells(page: Page, section: str) -> dict[str, str]:
    """The first row of a section's table: column -> text."""
    found = page.evaluate(
        f"Object.fromEntries([...document.querySelector('#{section} tbody tr').cells]"
        ".map(cell => [cell.dataset.name, cell.innerText]))"
    )
    assert isinstance(found, dict)
    return found


def show(page: Page, figures: dict[str, Any]) -> None:
    """Makes the page show these figures instead of the server's."""
    page.evaluate("globalThis.fetch = () => new Promise(() => {})")
    page.evaluate(f"draw({json.dumps(figures)})")


def test_it_shows_what_is_served_and_what_was_asked(page, served):
    before = status(served.server)["traffic"][0]["answered"]
    for _ in range(7):
        served.predict()
    open_status(page, served.url)
    traffic = cells(page, "traffic")
    assert (traffic["model"], traffic["signature"], traffic["api"]) == (NAME, "late", "Predict")
    assert (traffic["answered"], traffic["errors"]) == (str(before + 7), "0")
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    models = text(page, "#models")
    for shown in (NAME, "12", "AVAILABLE", "user", "DT_FLOAT"):
        assert shown in models


def test_page_and_json_say_the_same(page, served):
    figures = status(served.server)
    open_status(page, served.url)
    sections = page.evaluate("[...document.querySelectorAll('section')].map(one => one.id)")
    assert sections == list(figures)
    (traffic,) = figures["traffic"]
    assert (traffic["model"], traffic["signature"], traffic["api"]) == (NAME, "late", "Predict")
    assert traffic["rows"] == 3 * traffic["answered"] > 0
    assert traffic["errors"] == 0
    assert [name.replace("_", " ") for name in traffic] == list(cells(page, "traffic"))
    assert figures["total"]["runs"] == traffic["answered"]


def test_figures_move_without_a_reload(page, served):
    open_status(page, served.url)
    page.evaluate("window.stillTheSamePage = true")
    page.evaluate("document.querySelector('details').open = true")
    answered = "document.querySelector('#traffic [data-name=answered]').innerText"
    before = int(page.evaluate(answered))
    page.requested.clear()
    for _ in range(20):
        served.predict()
    assert page.wait_for(f"{answered} === '{before + 20}'")
    assert page.evaluate("window.stillTheSamePage === true")
    assert page.evaluate("document.querySelector('details').open")
    assert page.complaints == []
    assert set(page.requested) == {served.url + "status.json"}


def test_names_stay_text(page, served):
    open_status(page, served.url)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert NAME in text(page, "#models")
    assert COLUMN in text(page, "#models")
    hostile = "<script>alert(1)</script>" + COLUMN
    rows = [{"model": hostile, hostile: hostile, "list": [hostile], "rows": [{"a": hostile}]}]
    show(page, {"traffic": rows, "models": {"of": {"a": hostile}, "versions": rows}})
    assert text(page, "main").count(hostile) >= 6
    assert page.evaluate("document.querySelectorAll('main :is(b, script, img)').length") == 0
    assert page.complaints == []


def test_nothing_comes_from_elsewhere(page, served):
    open_status(page, served.url)
    assert all(url.startswith((served.url, "data:")) for url in page.requested)
    with urllib.request.urlopen(served.url, timeout=120) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert '<a href="status.json">' in answer.read().decode()
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.complaints == []


def test_figures_have_three_digits_and_units(page, served):
    open_status(page, served.url)
    expected = {
        ("rows", 0): "0",
        ("rows", 0.25): "0.25",
        ("rows", 12.34): "12.3",
        ("rows", 999.6): "1 k",
        ("rows", 1234567): "1.23 M",
        ("resident_bytes", 1500): "1.5 kB",
        ("bytes", 2.31e9): "2.31 GB",
        ("latency_micros_p99", 85): "85 µs",
        ("wait_micros_p99", 1240): "1.24 ms",
        ("uptime_seconds", 12.9): "12.9 s",
        ("cpu_seconds", 303): "5.05 min",
        ("requests_per_second_10s", 60): "60",
    }
    calls = {key: page.evaluate(f"numberText('{key[0]}', {key[1]})") for key in expected}
    assert calls == expected


@pytest.mark.parametrize("width", [1200, 390])
def test_it_fits_its_window(page, served, width):
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    open_status(page, served.url)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    rights = "[...document.querySelectorAll('td')].map(td => td.getBoundingClientRect().right)"
    assert page.evaluate(f"Math.max(...{rights})") <= width


def test_a_lost_server_is_distinguished_from_an_idle_one(page, served):
    """This must be the last test, because it stops the server."""
    open_status(page, served.url)
    served.server.kill()
    assert page.wait_for("document.body.className === 'stale'")
    assert "does not answer" in text(page, "#told")
    assert cells(page, "traffic")["model"] == NAME  # the page still shows the last figures
