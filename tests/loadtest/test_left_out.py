"""Formats that a server cannot answer are named and left out; the others are measured."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.cli.main import main
from colcast.loadtest.measure.series import Series, Target, _advice, _answered
from colcast.loadtest.send.connection import Request
from colcast.loadtest.send.formats import RequestData
from colcast.server import ServerProcess
from colcast.zoo import wide
from colcast.zoo.examples import serialize_request
from tensorflow.io import TFRecordWriter

from .conftest import SMALL


@pytest.fixture(scope="module")
def parses_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of the model as it was before its export: no columnar signature."""
    with ServerProcess("small", wide.ensure(SMALL, tmp_path_factory.mktemp("parses"))) as server:
        yield server


def loadtest(folder: Path, address: str, formats: str, *options: str) -> int:
    command = ["loadtest", "--target", f"stock={address}", "--model", "small", "--formats", formats]
    command += ["--traffic", "examples:" + str(recorded(folder)), "--output", str(folder)]
    return main([*command, "--windows", "1", "--seconds", "0.5", *options])


def recorded(folder: Path) -> Path:
    log = folder / "log.tfrecord"
    with TFRecordWriter(str(log)) as writer:
        for number, (user, items) in zip(range(3), wide.requests(SMALL, 4, 1), strict=False):
            for example in serialize_request({**user, "request_id": number}, items):
                writer.write(example)
    return log


def test_a_format_without_a_signature_is_named_with_its_target_and_the_others_are_measured(
    parses_only: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert loadtest(tmp_path, parses_only.target, "example,columnar,elwc,late", "--rate", "20") == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert [one["label"] for one in report["series"]] == ["stock: example", "stock: elwc"]
    assert [(one["target"], one["format"]) for one in report["left_out"]] == [
        *[("stock", "columnar"), ("stock", "late")]
    ]
    printed = capsys.readouterr().out
    assert "stock: columnar is left out: " in printed
    assert "columnar" in report["left_out"][0]["reason"]
    assert "stock: late is left out: " in (tmp_path / "report.html").read_text()


def test_nothing_left_is_an_error_with_every_reason(
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
def test_a_refusal_is_told_in_short_with_the_traffic_to_try(
    serve: Any, data: RequestData, advised: bool
):
    target = Target("", serve(refusing))
    written = [Series(target, "late", [Request(b"", 1)])]
    _, (left_out,) = _answered(written, _advice([data]))
    assert REFUSAL.strip("/") in left_out.reason
    told = str(left_out)
    assert told.startswith("late is left out: request 0 is refused, INVALID_ARGUMENT: indices[3]")
    assert told.endswith("try --traffic requests:FILE or examples:FILE") == advised
    assert len(told) < 240


def test_recorded_names_its_traffic(
    parses_only: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert loadtest(tmp_path, parses_only.target, "example,recorded", "--rate", "20") == 0
    printed = capsys.readouterr().out
    assert "stock: recorded is left out: it is for recorded PredictRequests, --traffic" in printed


class Batching(grpc.GenericRpcHandler):
    """Forwards to a server, as a batching session would for a model that checks its one-row inputs.

    Requests to `columnar_late` that are under way together are joined, and the graph refuses what
    it finds: as many user rows as requests, where it expects one.
    """

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(target)
        self._waiting: list[bytes] = []

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        if "PredictionService" not in handler_call_details.method:
            return None  # health: a server without it is taken as it is
        call = self._channel.unary_unary(handler_call_details.method)

        def forward(request: bytes, context: grpc.ServicerContext) -> bytes:
            if b"columnar_late" in request:
                self._join(request, context)
            return bytes(call(request))

        return grpc.unary_unary_rpc_method_handler(forward)

    def _join(self, request: bytes, context: grpc.ServicerContext) -> None:
        self._waiting.append(request)
        time.sleep(0.05)  # as a batch waits for company
        rows = len(self._waiting)
        self._waiting.remove(request)
        if rows > 1:
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"Shape of tensor user_000 [{rows}] is not compatible with expected shape [1]",
            )


def test_late_behind_a_batching_server_is_refused_not_wrong(
    served: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    batching = grpc.server(ThreadPoolExecutor(8), handlers=[Batching(served.target)])
    address = f"127.0.0.1:{batching.add_insecure_port('127.0.0.1:0')}"
    batching.start()
    try:
        options = ["--clients", "4", "--check-every", "1"]
        assert loadtest(tmp_path, address, "example,columnar,late", *options) == 1
    finally:
        batching.stop(grace=None).wait()
    report = json.loads((tmp_path / "report.json").read_text())
    example, columnar, late = report["series"]
    assert late["checked"]["wrong"] == 0
    assert late["figures"]["codes"]["INVALID_ARGUMENT"] > 0
    assert (example["sound"], columnar["sound"], late["sound"]) == (True, True, False)
    assert report["headline"]["best"] == "stock: columnar"
    (problem,) = capsys.readouterr().err.splitlines()
    assert "stock: late: " in problem
    assert "calls refused under load, INVALID_ARGUMENT: Shape of tensor user_000 " in problem
    assert "(batching) cannot serve this format" in problem
