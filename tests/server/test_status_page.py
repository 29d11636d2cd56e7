"""The status page, in a real browser."""

import json
import re
import threading
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import tensorflow as tf
from colcast.server import ServerProcess

from .browser import Page, browser
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
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base_path = tmp_path_factory.mktemp("late")
    module = Late()
    tf.saved_model.save(module, str(base_path / "12"), signatures={"late": module.score})
    inputs = {"user": [1.0], "item": [[0.0, 0.0, 0.0]] * 3}
    with ServerProcess(NAME, base_path, ["--rest_api_port=-1"]) as server:
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
        ".map(cell => [cell.dataset.name ?? cell.className, cell.innerText]))"
    )
    assert isinstance(found, dict)
    return found


def show(page: Page, status: dict[str, Any], metrics: str) -> None:
    """Makes the page show these figures, as of two seconds after earlier ones that were half."""
    page.evaluate("globalThis.fetch = () => new Promise(() => {})")
    page.evaluate("samples.splice(0)")
    half = re.sub(r" (\d+)$", lambda found: f" {int(found[1]) // 2}", metrics, flags=re.MULTILINE)
    for time, text_ in ((0, half), (2, metrics)):
        page.evaluate(f"samples.push({{ time: {time}, metrics: parse({json.dumps(text_)}) }})")
    page.evaluate(f"draw({json.dumps(status)})")


def test_it_shows_what_is_served_and_what_was_asked(page, served):
    open_status(page, served.url)
    asking = threading.Event()

    def ask() -> None:
        while not asking.wait(0.05):
            served.predict()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        assert page.wait_for("samples.length > 3")
        traffic = cells(page, "traffic")
    finally:
        asking.set()
        thread.join()
    assert traffic["name"] == f"{NAME} late · Predict · GRPC"
    assert float(traffic["requests/s"]) > 0
    assert traffic["rows/request"] == "3"
    assert traffic["p50"].endswith("s")
    assert traffic["errors"] == "0"
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    models = text(page, "#models")
    for shown in (NAME, "12", "AVAILABLE", f"late(item float[?, 3], user float[1]) → {COLUMN}"):
        assert shown in models


FIGURES = """
:colcast:requests_total{model_name="m",signature_name="s",API="Predict",entrypoint="GRPC",status="OK"} 80
:colcast:requests_total{model_name="m",signature_name="s",API="Predict",entrypoint="GRPC",status="INTERNAL"} 20
:colcast:requests_total{model_name="m",signature_name="t",API="Predict",entrypoint="REST",status="OK"} 40
:colcast:rows_sum{model_name="m",signature_name="s",API="Predict",entrypoint="GRPC"} 8000
:colcast:bytes_saved_total{model_name="m",signature_name="s",API="Predict",entrypoint="GRPC"} 4000000
:colcast:runtime_microseconds_sum{model_name="m",signature_name="s",API="Predict",entrypoint="GRPC"} 300
:colcast:runtime_microseconds_sum{model_name="m",signature_name="t",API="Predict",entrypoint="REST"} 100
:colcast:request_latency_microseconds_bucket{model_name="m",signature_name="s",API="Predict",entrypoint="GRPC",le="10"} 0
:colcast:request_latency_microseconds_bucket{model_name="m",signature_name="s",API="Predict",entrypoint="GRPC",le="20"} 40
:colcast:request_latency_microseconds_bucket{model_name="m",signature_name="s",API="Predict",entrypoint="GRPC",le="+Inf"} 80
:colcast:states_found_total{model_name="m",version="1",signature_name="s",store="user"} 60
:colcast:states_computed_total{model_name="m",version="1",signature_name="s",store="user"} 20
:colcast:states{model_name="m",version="1",signature_name="s",store="user"} 7
:colcast:state_bytes{model_name="m",version="1",signature_name="s",store="user"} 2048
:colcast:table_bytes{model_name="m",version="1",kind="mapped"} 3000000000
:colcast:table_bytes{model_name="m",version="1",kind="resident"} 1500000000
:colcast:item_table_rows{model_name="m",key="id"} 5
:colcast:item_lookups_total{model_name="m",key="id"} 400
process_cpu_seconds_total 8
"""  # noqa: E501


def test_figures_are_of_the_time_between_two_samples(page, served):
    open_status(page, served.url)
    models = [{"name": "m", "base_path": "/m", "versions": []}]
    items = [{"model": "m", "key": "id", "error": "the file is cut off"}]
    show(page, {"server": {"version": "1"}, "models": models, "item_tables": items}, FIGURES)
    traffic = cells(page, "traffic")
    assert traffic["name"] == "m"
    assert traffic["requests/s"] == "35"  # half of 140 in two seconds
    assert traffic["p50"] == "20 µs"
    assert traffic["CPU/request"] == "66.7 ms"  # 4 s for 60 answers
    assert traffic["rows/request"] == "66.7"
    assert traffic["bytes saved"] == "1 MB/s"
    assert traffic["errors"] == "20 of 140"
    part = page.evaluate("document.querySelectorAll('#traffic tbody tr')[1].innerText")
    assert "s · Predict · GRPC" in part
    assert "75 ms" in part  # three quarters of the time in the model, for 40 answers
    states = cells(page, "states")
    assert (states["hit rate"], states["cached"], states["memory"]) == ("75 %", "7", "2.05 kB")
    tables = cells(page, "tables")
    assert (tables["size"], tables["in memory"]) == ("3 GB", "50 %")
    assert "the file is cut off" in text(page, "#tables")
    assert "nothing in /m" in text(page, "#models")


def test_figures_move_without_a_reload_and_nothing_comes_from_elsewhere(page, served):
    open_status(page, served.url)
    page.evaluate("window.stillTheSamePage = true")
    page.evaluate("document.querySelector('details').open = true")
    page.requested.clear()
    shown = int(page.evaluate("samples.length"))
    assert page.wait_for(f"samples.length > {shown + 1}")
    assert page.evaluate("window.stillTheSamePage === true")
    assert page.evaluate("document.querySelector('details').open")
    assert page.complaints == []
    assert set(page.requested) == {served.url + "status.json", served.url + "metrics"}
    with urllib.request.urlopen(served.url, timeout=120) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert '<a href="status.json">' in answer.read().decode()
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_names_stay_text(page, served):
    open_status(page, served.url)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert NAME in text(page, "#models")
    assert COLUMN in text(page, "#models")
    hostile = "<script>alert(1)</script>" + COLUMN
    version = {"version": "1", "state": "END", "error_code": "INTERNAL", "error": hostile}
    version |= {"labels": [hostile], "notes": [hostile], "signatures": []}
    models = [{"name": hostile, "base_path": hostile, "versions": [version]}]
    metrics = FIGURES.replace('"m"', json.dumps(hostile)).replace('"user"', json.dumps(hostile))
    show(page, {"server": {"version": hostile}, "models": models, "item_tables": []}, metrics)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert text(page, "main").count(hostile) >= 6
    assert page.evaluate("document.querySelectorAll('main :is(script, img)').length") == 0
    assert page.complaints == []


@pytest.mark.parametrize("width", [1280, 390])
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
    assert NAME in cells(page, "traffic")["name"]  # the page still shows the last figures
