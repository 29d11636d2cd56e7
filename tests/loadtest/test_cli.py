"""`colcast loadtest` against the native server: measurements, reports, refusals."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from colcast.cli.main import main
from colcast.loadtest.measure.recording import Recording
from colcast.loadtest.measure.series import Series, prepare
from colcast.server import ServerProcess
from colcast.zoo import wide
from colcast.zoo.examples import serialize_request
from tensorflow.io import TFRecordWriter

from ..server.tls import Authority, config_flag
from .conftest import SMALL
from .test_search import recording


def of_small(address: str) -> list[str]:
    """The options that select the model `small` at this address."""
    return ["loadtest", "--target", address, "--model", "small"]


def loadtest(folder: Path, served: ServerProcess, *options: str, code: int = 0) -> dict[str, Any]:
    """Runs a short load test; returns its report."""
    command = [*of_small(served.target), "--sizes", "20", "--distinct", "8"]
    command += ["--windows", "2", "--seconds", "0.5", "--output", str(folder), *options]
    assert main(command) == code
    assert "<svg" in (folder / "report.html").read_text()
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def test_locusts_file_is_found_wherever_colcast_is_installed(
    capsys: pytest.CaptureFixture[str],
):
    assert main(["loadtest", "--locust-file"]) == 0
    assert "--turns" in Path(capsys.readouterr().out.strip()).read_text()


def three_requests(folder: Path) -> Path:
    """Writes a recording of three requests as tf.Examples, each with four candidates."""
    log = folder / "log.tfrecord"
    with TFRecordWriter(str(log)) as writer:
        for request, (user, items) in zip(range(3), wide.requests(SMALL, 4, 1), strict=False):
            for example in serialize_request({**user, "request_id": request}, items):
                writer.write(example)
    return log


def by_label(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["label"]: one for one in report["series"]}


def test_every_format_gets_the_same_schedule_and_right_answers(
    served: ServerProcess, tmp_path: Path
):
    formats = "example,elwc,repeated,columnar,late"
    report = loadtest(tmp_path, served, "--rate", "100", "--formats", formats)
    series = by_label(report)
    assert list(series) == formats.split(",")
    for one in series.values():
        assert one["figures"]["codes"] == {"OK": series["example"]["figures"]["calls"]}
        assert one["figures"]["server_cpu_ms"] > 0
        assert one["server_memory_bytes"] > 50e6
        assert one["checked"]["answers"] >= 5
        assert one["checked"]["wrong"] == 0
    bytes_of = {label: one["figures"]["request_bytes"] for label, one in series.items()}
    assert bytes_of["columnar"] < bytes_of["elwc"] < bytes_of["example"]
    assert bytes_of["columnar"] < bytes_of["repeated"] < bytes_of["example"]
    assert report["candidates"] == [20] * 8
    assert report["problems"] == []


def test_two_servers_are_compared_under_their_names(served: ServerProcess, tmp_path: Path):
    command = ["loadtest", "--target", f"a={served.target}", "--target", f"b={served.target}"]
    command += ["--model", "small", "--sizes", "5", "--distinct", "3", "--rate", "50"]
    command += ["--formats", "columnar", "--windows", "1", "--seconds", "0.3"]
    assert main([*command, "--output", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert list(by_label(report)) == ["a: columnar", "b: columnar"]


def test_a_server_with_tls(exported: Path, tmp_path: Path):
    authority = Authority(tmp_path, "authority")
    flag = config_flag(tmp_path / "ssl.cfg", authority.issue("server"))
    tls = ["--tls-root-certificates", f"{authority.root}", "--tls-server-name", "localhost"]
    with ServerProcess("small", exported, flags=[flag]) as server:
        for load in (["--rate", "50"], ["--clients", "1"]):
            report = loadtest(tmp_path, server, *load, "--formats", "columnar", *tls)
            assert set(report["series"][0]["figures"]["codes"]) == {"OK"}


def test_recorded_examples_are_replayed_in_every_format(
    served: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log = three_requests(tmp_path)
    for source in (str(log), "-"):
        with log.open() as standard_input, monkeypatch.context() as patched:
            patched.setattr("sys.stdin", standard_input)
            traffic = ["--traffic", f"examples:{source}", "--clients", "1"]
            report = loadtest(tmp_path, served, *traffic, "--formats", "elwc,example,columnar,late")
        assert report["candidates"] == [4, 4, 4]
        assert report["problems"] == []


def test_the_highest_rate_is_searched_and_shown(
    served: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """No rate meets the latency target, which keeps the search short."""
    options = ["--find-max", "--sla-p95", "0.001ms", "--formats", "columnar", "--seconds", "0.1"]
    report = loadtest(tmp_path, served, *options, code=1)
    search = report["series"][0]["search"]
    assert search["highest_rate"] is None
    assert len(search["windows"]) >= 2
    printed = capsys.readouterr()
    assert "columnar: 50 per second, p95" in printed.out
    assert "columnar: no rate meets p95 <= 0.001 ms" in printed.err


def searched(rate: float) -> Recording:
    return recording(*[5.0 if rate <= 100 else 500.0] * 20)


@pytest.fixture
def known_limit(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Simulates a server that sustains 100 requests per second; returns the rates tried."""
    rates: list[float] = []

    def window(one: Series, rate: float, *_: Any) -> Recording:
        rates.append(rate)
        return searched(rate)

    monkeypatch.setattr("colcast.loadtest.measure.run._open_window", window)
    return rates


SEARCH = ["--find-max", "--sla-p95", "25ms", "--formats", "example,columnar,late"]


def test_ctrl_c_ends_a_search_and_its_report_is_written(served: ServerProcess, tmp_path: Path):
    command = [*of_small(served.target), *SEARCH, "--seconds", "0.3", "--sizes", "20"]
    command += ["--distinct", "4", "--output", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-m", "colcast.cli.main", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout
        assert run.stderr
        next(line for line in run.stdout if line.startswith("example: 50 per second"))
        run.send_signal(signal.SIGINT)
        run.stdout.read()
        assert "example: interrupted; " in run.stderr.read()
    assert run.returncode == 130
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["series"][0]["search"]["ended_by"] == "an interrupt"
    assert report["series"][0]["search"]["windows"]


def test_a_search_keeps_to_its_minutes(
    served: ServerProcess,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    known_limit: list[float],
):
    report = loadtest(tmp_path, served, *SEARCH, "--max-minutes", "1e-9")
    for one in report["series"]:
        assert one["search"]["highest_rate"] == 50
        assert one["search"]["ended_by"] == "--max-minutes"
    assert report["headline"] is None
    assert "late: --max-minutes ended the search early" in capsys.readouterr().out
    assert "≥ 50" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            ["--formats", "parquet"],
            2,
            "no format 'parquet'; expected one of example, elwc, repeated",
        ),
        (["--sizes", "none"], 2, "sizes 'none'"),
        (["--target", "nowhere"], 2, "target 'nowhere': expected HOST:PORT"),
        (["--traffic", "zoo:nothing"], 2, "the zoo has no 'nothing'"),
        (["--traffic", "file.csv"], 2, "traffic 'file.csv': expected generated"),
        (["--traffic", "requests:/does/not/exist"], 1, "No such file"),
        (["--pid", "1", "--pid", "1"], 2, "--pid is given 2 times for 1 targets"),
        (["--user-features", "nobody_*"], 2, "no feature matches 'nobody_*'"),
        (["--model", "other"], 1, "other"),
        (["--distinct", "0"], 2, "Invalid value for '--distinct': 0 is not in the range x>=1"),
        (["--max-minutes", "1"], 2, "--max-minutes is for --find-max"),
        (["--clients", "1"], 2, "give exactly one of --rate, --clients and --find-max"),
        (["--clients", "0"], 2, "Invalid value for '--clients': 0 is not in the range"),
        (["--windows", "0"], 2, "Invalid value for '--windows': 0 is not in the range"),
        (["--tolerance", "-1"], 2, "Invalid value for '--tolerance': -1.0 is not in the range"),
        (["--tolerance", "nan"], 2, "Invalid value for '--tolerance': nan is not a number"),
        *[
            (["--sla-p95", text], 2, f"{text!r}: expected a time like 25ms or 1.5s")
            for text in ("25", "ms", "0ms", "5 ms")
        ],
    ],
)
def test_mistakes_are_one_line_that_names_them(
    served: ServerProcess, options: list[str], code: int, message: str, capsys: Any
):
    given = ["--target", served.target, "--model", "small", "--rate", "1", *options]
    assert main(["loadtest", *given]) == code
    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith("colcast loadtest: ")
    assert message in first
    assert others == (["Try 'colcast loadtest --help'."] if code == 2 else [])


def test_a_search_needs_one_target(capsys: pytest.CaptureFixture[str]):
    search = ["loadtest", "--target", "h:1", "--model", "m", "--find-max"]
    for slas in ([], ["--sla-p95", "25ms", "--sla-p99", "1.5s"]):
        assert main([*search, *slas]) == 2
        assert "--find-max needs one target" in capsys.readouterr().err


@pytest.mark.parametrize("below", ["", "folder"])
def test_an_output_that_is_not_a_folder_is_refused_before_any_request(
    below: str, serve: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    asked = []
    address = serve(lambda request, _: asked.append(request) or b"")
    output = tmp_path / "file" / below
    (tmp_path / "file").write_text("kept")
    command = [*of_small(address), "--rate", "1", "--output", str(output)]
    assert main(command) == 2
    assert f"colcast loadtest: --output {output}: cannot create" in capsys.readouterr().err
    assert asked == []
    assert (tmp_path / "file").read_text() == "kept"


def test_a_server_that_ends_during_the_test_is_named(
    served: ServerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """A process stands in for the server, and ends once the requests are prepared."""
    child = subprocess.Popen(["sleep", "60"])

    def end_then_encode(*args: Any) -> Any:
        child.kill()
        child.wait()
        return prepare(*args)

    monkeypatch.setattr("colcast.loadtest.load_test.prepare", end_then_encode)
    command = [*of_small(served.target), "--rate", "1", "--distinct", "1"]
    command += ["--formats", "columnar", "--pid", str(child.pid), "--output", str(tmp_path)]
    assert main(command) == 1
    ended = f"the server at {served.target} (process {child.pid}) ended during the test"
    assert ended in capsys.readouterr().err
    assert main(command) == 1
    assert f"no process {child.pid} to measure" in capsys.readouterr().err


@pytest.mark.parametrize(("limit", "code"), [("10s", 0), ("0.001ms", 1)])
def test_a_gate_passes_or_fails(served: ServerProcess, tmp_path: Path, limit: str, code: int):
    command = [*of_small(served.target), "--formats", "columnar"]
    command += ["--rate", "50", "--windows", "1", "--seconds", "0.5", "--distinct", "3"]
    command += ["--sla-p95", limit, "--max-errors", "0", "--timeout", "30"]
    junit_file = tmp_path / "result.xml"
    assert main([*command, "--output", str(tmp_path), "--junit", str(junit_file)]) == code
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["passed"] == (code == 0)
    assert ElementTree.parse(junit_file).getroot().get("failures") == f"{code}"


@pytest.fixture(scope="module")
def parses_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of the model before its export, without a columnar signature."""
    with ServerProcess("small", wide.ensure(SMALL, tmp_path_factory.mktemp("parses"))) as server:
        yield server


def of_stock(folder: Path, address: str, formats: str) -> int:
    command = ["loadtest", "--target", f"stock={address}", "--model", "small", "--formats", formats]
    command += ["--traffic", f"examples:{three_requests(folder)}", "--output", str(folder)]
    return main([*command, "--windows", "1", "--seconds", "0.5", "--rate", "20"])


def test_a_format_without_a_signature_is_named_with_its_target_and_the_others_are_measured(
    parses_only: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    formats = "example,columnar,elwc,late,recorded"
    assert of_stock(tmp_path, parses_only.target, formats) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert [one["label"] for one in report["series"]] == ["stock: example", "stock: elwc"]
    assert [(one["target"], one["format"]) for one in report["left_out"]] == [
        *[("stock", "columnar"), ("stock", "late"), ("stock", "recorded")]
    ]
    printed = capsys.readouterr().out
    assert "stock: columnar is left out: " in printed
    assert "stock: recorded is left out: needs recorded PredictRequests, --traffic" in printed
    assert "columnar" in report["left_out"][0]["reason"]
    assert "stock: late is left out: " in (tmp_path / "report.html").read_text()
    assert of_stock(tmp_path, parses_only.target, "columnar,late") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("colcast loadtest: stock: columnar is left out: ")
    assert "; stock: late is left out: " in line
