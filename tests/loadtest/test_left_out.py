"""Formats that a server cannot answer are left out; optional scalars get one value."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.loadtest.measure.series import Series, Target, _advice, _answered
from colcast.loadtest.send.connection import Request
from colcast.loadtest.send.formats import RequestData
from colcast.loadtest.send.generated import accepted_by, generated
from colcast.server import ServerProcess
from colcast.zoo import wide

from .conftest import SMALL
from .test_cli import three_requests


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
    _, (left_out,) = _answered(written, _advice([data]))
    assert REFUSAL.strip("/") in left_out.reason
    reason = str(left_out)
    assert reason.startswith("late is left out: request 0 is refused, INVALID_ARGUMENT: indices[3]")
    assert reason.endswith("try --traffic requests:FILE or examples:FILE") == advised
    assert len(reason) < 240


def test_recorded_names_its_traffic(
    parses_only: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert loadtest(tmp_path, parses_only.target, "example,recorded", "--rate", "20") == 0
    printed = capsys.readouterr().out
    assert "stock: recorded is left out: needs recorded PredictRequests, --traffic" in printed


class Batching(grpc.GenericRpcHandler):
    """A proxy that refuses simultaneous requests to `columnar_late`, like a batching session.

    A batching session joins them, so the graph finds several user rows and refuses them.
    """

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(target)
        self._waiting: list[bytes] = []

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        if "PredictionService" not in handler_call_details.method:
            return None  # no health service, so the client counts the server as serving
        call = self._channel.unary_unary(handler_call_details.method)

        def forward(request: bytes, context: grpc.ServicerContext) -> bytes:
            if b"columnar_late" in request:
                self._join(request, context)
            return bytes(call(request))

        return grpc.unary_unary_rpc_method_handler(forward)

    def _join(self, request: bytes, context: grpc.ServicerContext) -> None:
        self._waiting.append(request)
        time.sleep(0.05)  # time in which others can join the batch
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


SPEC = {
    "user_age": tf.io.FixedLenFeature([], tf.int64),
    "user_history": tf.io.VarLenFeature(tf.int64),
    "price": tf.io.FixedLenFeature([], tf.float32),
    "discount": tf.io.VarLenFeature(tf.float32),
    "tags": tf.io.VarLenFeature(tf.int64),
}


def serve(examples: Any) -> Any:
    """A model that needs one value of `discount` per row; other lists may have any number."""
    parsed = tf.io.parse_example(examples, SPEC)
    lists = [tf.sparse.reduce_sum(parsed[name], 1) for name in ("user_history", "tags")]
    discount = tf.reshape(tf.sparse.to_dense(parsed["discount"]), [tf.shape(examples)[0], 1])
    scalars = tf.cast(parsed["user_age"], tf.float32) * parsed["price"] + discount[:, 0]
    return {"scores": scalars + tf.cast(tf.add_n(lists), tf.float32)}


@pytest.fixture(scope="module")
def optional(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of the model whose signature is `serve`."""
    folder = tmp_path_factory.mktemp("optional")
    signature = tf.function(serve, [tf.TensorSpec([None], tf.string, "examples")])
    tf.saved_model.save(tf.Module(), str(folder / "model"), signatures=signature)
    served = folder / "served"
    export_saved_model(folder / "model", served / "1", user_features=["user_*"], late=True)
    with ServerProcess("optional", served) as server:
        yield server


def test_lists_have_one_value_if_a_feature_must(optional: ServerProcess) -> None:
    with RankingClient(optional.target, "optional", timeout_seconds=60) as client:
        requests = generated(
            client.schema(), [40, 40], 0, ["user_*"], accepts=accepted_by(client, None)
        )
    for request in requests:
        assert {len(values) for values in request.items["discount"]} == {1}
        assert {len(values) for values in request.items["tags"]} == {1}
