"""The status page in a real browser."""

import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tensorflow as tf
from colcast.server import ServerProcess

from .browser import Page, browser

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
    page.open(served.url)
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
        page.open(served.url)
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
    page.open(served.url)
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
    assert set(page.requested) == {served.url}


def test_names_stay_text(page, served):
    page.open(served.url)
    assert page.evaluate("document.querySelectorAll('main b').length") == 1  # of the signature
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert NAME in text(page, "#models")
    page.evaluate("document.querySelector('details').open = true")
    assert COLUMN in text(page, "details")
    assert page.complaints == []


def test_nothing_comes_from_elsewhere(page, served):
    page.open(served.url)
    assert len(page.requested) >= 3
    assert all(url.startswith((served.url, "data:")) for url in page.requested)
    with urllib.request.urlopen(served.url, timeout=120) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_server_that_is_gone_is_told_from_an_idle_one(page, served):
    served.predict()
    page.open(served.url)
    served.server.kill()
    assert page.wait_for("document.body.classList.contains('stale')")
    assert "does not answer" in text(page, "#refreshed")
    assert traffic(page)[0] == NAME  # its last figures are still there


def test_without_scripts_it_reloads_itself(page, served):
    served.predict()
    with urllib.request.urlopen(served.url, timeout=120) as answer:
        html = answer.read().decode()
    assert '<noscript><meta http-equiv="refresh"' in html
    assert "<td>late</td><td>Predict</td>" in html


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
    page.open(served.url)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
