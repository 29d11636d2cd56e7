"""Formats that a server cannot answer are left out; optional scalars get one value."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.cli.main import main
from colcast.loadtest.measure.series import Series, Target, _answered
from colcast.loadtest.send.connection import Request
from colcast.loadtest.send.formats import RequestData
from colcast.server import ServerProcess
from colcast.zoo import wide

from .conftest import SMALL
from .test_cli import three_requests
from .test_closed_loop import response


@pytest.fixture(scope="module")
def parses_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of the model before its export, without a columnar signature."""
    with ServerProcess("small", wide.ensure(SMALL, tmp_path_factory.mktemp("parses"))) as server:
        yield server


def loadtest(folder: Path, address: str, formats: str, *options: str) -> int:
    command = ["loadtest", "--target", f"stock={address}", "--model", "small", "--formats", formats]
    command += ["--traffic", f"examples:{three_requests(folder)}", "--output", str(folder)]
    return main([*command, "--windows", "1", "--seconds", "0.5", *options])


def test_a_format_without_a_signature_is_named_with_its_target_and_the_others_are_measured(
    parses_only: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert (
        loadtest(
            tmp_path, parses_only.target, "example,columnar,elwc,late,recorded", "--rate", "20"
        )
        == 0
    )
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


def test_no_remaining_server_is_an_error_with_every_reason(
    parses_only: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert loadtest(tmp_path, parses_only.target, "columnar,late", "--rate", "20") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("colcast loadtest: stock: columnar is left out: ")
    assert "; stock: late is left out: " in line


REFUSAL = "indices[3] = 90210 is not in [0, 1000) in node " + "model/embedding/Gather/" * 20


def refusing(request: bytes, context: grpc.ServicerContext) -> bytes:
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, REFUSAL)
    raise AssertionError


GENERATED = RequestData(rows=1, user={"a": 1}, items=[{"b": 2}])


@pytest.mark.parametrize(
    ("data", "advised"), [(GENERATED, True), (replace(GENERATED, recorded=b"x"), False)]
)
def test_a_refusal_is_summarised_with_the_traffic_to_try(
    serve: Any, data: RequestData, advised: bool
):
    target = Target("", serve(refusing))
    written = [Series(target, "late", [Request(b"", 1)])]
    _, (left_out,) = _answered(written, [data])
    assert REFUSAL.strip("/") in left_out.reason
    reason = str(left_out)
    assert reason.startswith("late is left out: request 0 is refused, INVALID_ARGUMENT: indices[3]")
    assert reason.endswith("try --traffic requests:FILE or examples:FILE") == advised
    assert len(reason) < 240


def test_the_largest_difference_from_the_first_format_counts(serve: Any):
    answers = {b"a": 1.0, b"b": 2.0, b"c": 1.0, b"d": 3.0}
    target = Target("", serve(lambda request, _: response(score=[answers[request]])))
    written = [
        Series(target, name, [Request(payload, 1) for payload in payloads])
        for name, payloads in (("example", (b"a", b"b")), ("late", (b"c", b"d")))
    ]
    series, left_out = _answered(written, [])
    assert [one.difference for one in series] == [0.0, 0.5]
    assert left_out == []
