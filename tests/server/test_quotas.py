"""What callers may ask: limits over gRPC and REST, for every kind of request, and their file."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import tensorflow as tf
from colcast.server import ServerFailedError, ServerProcess
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    regression_pb2,
)

from .. import models
from ..models.gated import Gate
from ..models.saving import save_version
from .callers import FLAG, NEVER, by, post, ranked, refusal, rest
from .metrics_page import Metrics


class Examples(tf.Module):
    """The number in a tf.Example, as a score and as a value."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def number(self, examples: tf.Tensor) -> tf.Tensor:
        feature = {"number": tf.io.FixedLenFeature([], tf.float32)}
        return tf.io.parse_example(examples, feature)["number"]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"scores": self.number(inputs)[:, tf.newaxis]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def regress(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"outputs": self.number(inputs)[:, tf.newaxis]}


@pytest.fixture(scope="module", name="models")
def _models(tmp_path_factory: pytest.TempPathFactory, ranker_base_path: Path) -> str:
    folder = tmp_path_factory.mktemp("models")
    models.build("gated", folder / "gated" / "1")
    model = Examples()
    save_version(
        folder / "examples" / "1", model, {"classify": model.classify, "regress": model.regress}
    )
    paths = {"ranker": ranker_base_path, "gated": folder / "gated", "examples": folder / "examples"}
    lines = [
        f'config {{ name: "{name}" base_path: "{path}" model_platform: "tensorflow" }}'
        for name, path in paths.items()
    ]
    (folder / "config").write_text("model_config_list { " + " ".join(lines) + " }")
    return f"--model_config_file={folder / 'config'}"


@pytest.fixture(name="serve")
def _serve(models: str, monitoring: list[str], tmp_path: Path) -> Callable[..., ServerProcess]:
    """A server with these quotas, to be entered."""

    def serve(quotas: str = "", *flags: str) -> ServerProcess:
        file = tmp_path / "quotas.config"
        file.write_text(quotas)
        given = [FLAG, f"--quota_config_file={file}"] if quotas else [FLAG]
        return ServerProcess(flags=[models, *monitoring, *given, *flags])

    return serve


def test_a_callers_requests_in_flight_are_limited_on_all_its_connections(
    serve, connect, tmp_path, wait_until
):
    quota = 'quota { model: "gated" caller: "batch" max_requests_in_flight: 2 }'
    with serve(quota, "--num_workers=4") as server:
        first, second = (connect(server.target, own_connection=True) for _ in range(2))
        held = [Gate(tmp_path / str(number)) for number in range(2)]

        def ask(stubs: Any, gate: Path, caller: str) -> Any:
            request = stubs.request({"path": str(gate), "x": [1.0]}, name="gated")
            return stubs.prediction.Predict.future(request, timeout=120, metadata=by(caller))

        answers = [ask(first, gate.path, "batch") for gate in held]
        wait_until(lambda: all(gate.is_reached() for gate in held))
        refused = ask(second, tmp_path / "none", "batch")
        assert refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert refused.details() == (
            'caller "batch" may have 2 requests to model "gated" in flight, and one more than '
            "these came (max_requests_in_flight of --quota_config_file); try again when one of "
            "them is answered"
        )
        status, error = post(server, "gated:predict", {"inputs": {"path": "", "x": [1]}}, "batch")
        assert (status, error) == (429, refused.details())
        # Of others, of other models, and what nobody serves.
        assert "No such file" in ask(second, tmp_path / "none", "feed").details()
        assert len(second.predict(ranked(3))["score"]) == 3
        nothing = second.request({}, name="nothing")
        missing = second.prediction.Predict.future(nothing, timeout=120, metadata=by("batch"))
        assert missing.code() is grpc.StatusCode.NOT_FOUND
        for gate, answer in zip(held, answers, strict=True):
            gate.open()
            assert "Illegal seek" in answer.details()  # a pipe is no file
        assert "No such file" in ask(second, tmp_path / "none", "batch").details()


def test_a_compressed_request_is_limited_when_its_model_is_known(
    serve, connect, tmp_path, wait_until
):
    quota = 'quota { model: "gated" caller: "batch" max_requests_in_flight: 1 }'
    with serve(quota, "--num_workers=2") as server:
        stubs, gate = connect(server.target), Gate(tmp_path / "gate")
        request = stubs.request({"path": str(gate.path), "x": [1.0]}, name="gated")
        held = stubs.prediction.Predict.future(request, timeout=120, metadata=by("batch"))
        wait_until(gate.is_reached)
        text = refusal(
            stubs.prediction.Predict,
            request,
            metadata=by("batch"),
            compression=grpc.Compression.Gzip,
        )
        assert 'caller "batch" may have 1 requests to model "gated" in flight' in text
        gate.open()
        assert "Illegal seek" in held.details()


def test_a_flood_is_refused_and_others_are_answered_all_the_while(serve, connect):
    quota = 'quota { caller: "batch" max_requests_in_flight: 4 max_rows_per_second: 2000 }'
    with serve(quota, "--num_workers=1", "--max_queued_requests=8") as server:
        flooding = [connect(server.target, own_connection=True) for _ in range(2)]
        request = flooding[0].request(ranked(100))
        flood = [
            stubs.prediction.Predict.future(request, timeout=120, metadata=by("batch"))
            for _ in range(200)
            for stubs in flooding
        ]
        feed = connect(server.target, own_connection=True)
        small = feed.request(ranked(3))
        while True:
            feed.prediction.Predict(small, timeout=120, metadata=by("feed"))
            assert post(server, "ranker:predict", {"inputs": rest(ranked(3))}, "feed")[0] == 200
            if all(answer.done() for answer in flood):
                break
        codes = [answer.code() for answer in flood]
        refused = [answer.details() for answer in flood if answer.code() is not grpc.StatusCode.OK]
        assert set(codes) == {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert all(re.match('caller "batch" may (have 4|send 2000) ', text) for text in refused)
        page = Metrics(server)
        counted = [
            page.value(":colcast:caller_refused", caller="batch", limit=limit)
            for limit in ("requests_in_flight", "rows_per_second")
        ]
        assert sum(counted) == len(refused)
        assert page.value(":colcast:caller_rows", caller="batch") == 100 * codes.count(
            grpc.StatusCode.OK
        )
        assert page.value(":colcast:caller_run_seconds", caller="batch") > 0
        for limit in ("requests_in_flight", "rows_per_second", "burst_rows"):
            assert page.value(":colcast:caller_refused", caller="feed", limit=limit) == 0


def test_rows_are_limited_over_grpc_and_rest_together(serve, connect):
    with serve(f'quota {{ caller: "batch" {NEVER} max_burst_rows: 10 }}') as server:
        stubs = connect(server.target)

        def ask(rows: int) -> Any:
            return stubs.prediction.Predict(
                stubs.request(ranked(rows)), timeout=120, metadata=by("batch")
            )

        def ask_rest(rows: int) -> tuple[int, str]:
            return post(server, "ranker:predict", {"inputs": rest(ranked(rows))}, "batch")

        ask(4)
        assert ask_rest(4)[0] == 200
        status, error = ask_rest(3)
        assert status == 429
        told = re.fullmatch(
            'caller "batch" may send 0.001 rows per second to model "ranker", of which 2 are left, '
            r"and a request has 3 \(max_rows_per_second of --quota_config_file\); try again in "
            r"(\d+) ms",
            error,
        )
        assert told
        assert 0 < int(told[1]) <= 1_000_000
        assert "of which 2 are left, and a request has 3" in refusal(
            stubs.prediction.Predict, stubs.request(ranked(3)), metadata=by("batch")
        )
        assert "may send 10 rows" in ask_rest(11)[1]
        ask(2)
        # Callers without a name, and others.
        stubs.predict(ranked(11))
        assert post(server, "ranker:predict", {"inputs": rest(ranked(11))}, "feed")[0] == 200
        assert post(server, "ranker:predict", {"inputs": rest(ranked(11))})[0] == 200


def test_a_joined_run_takes_each_callers_rows(serve, connect, tmp_path, wait_until):
    quotas = f'quota {{ model: "ranker" caller: "batch" {NEVER} max_burst_rows: 10 }}'
    with serve(quotas, "--num_workers=1", "--enable_batching") as server:
        stubs, gate = connect(server.target), Gate(tmp_path / "gate")
        held = stubs.request({"path": str(gate.path), "x": [1.0]}, name="gated")
        running = stubs.prediction.Predict.future(held, timeout=120)
        wait_until(gate.is_reached)
        request = stubs.request(ranked(4))
        waiting = {
            caller: [
                stubs.prediction.Predict.future(request, timeout=120, metadata=by(caller))
                for _ in range(5)
            ]
            for caller in ("batch", "feed")
        }
        wait_until(lambda: Metrics(server).value(":colcast:queue_length") == 10)
        gate.open()
        assert "Illegal seek" in running.details()
        codes = {c: [a.code() for a in answers] for c, answers in waiting.items()}
        assert codes["feed"].count(grpc.StatusCode.OK) == 5
        assert codes["batch"].count(grpc.StatusCode.OK) == 2
        assert codes["batch"].count(grpc.StatusCode.RESOURCE_EXHAUSTED) == 3


def example_requests() -> dict[str, Any]:
    """One of each kind, without examples."""
    classify = classification_pb2.ClassificationRequest()
    regress = regression_pb2.RegressionRequest()
    multi = inference_pb2.MultiInferenceRequest()
    for request, name in ((classify, "classify"), (regress, "regress")):
        request.model_spec.name = "examples"
        request.model_spec.signature_name = name
        task = multi.tasks.add(method_name=f"tensorflow/serving/{name}")
        task.model_spec.CopyFrom(request.model_spec)
    return {"Classify": classify, "Regress": regress, "MultiInference": multi}


@pytest.mark.parametrize("method", ["Classify", "Regress", "MultiInference"])
def test_examples_are_rows(serve, connect, method):
    quotas = f'quota {{ model: "examples" {NEVER} max_burst_rows: 5 }}'
    with serve(quotas) as server:
        stubs, request = connect(server.target), example_requests()[method]
        example = tf.train.Example()
        example.features.feature["number"].float_list.value.append(0.5)
        request.input.example_list.examples.extend([example] * 3)
        call = getattr(stubs.prediction, method)
        call(request, timeout=120, metadata=by("batch"))
        text = refusal(call, request, metadata=by("batch"))
        assert 'caller "batch" may send 0.001 rows per second to model "examples"' in text
        assert "of which 2 are left, and a request has 3" in text
        call(request, timeout=120, metadata=by("feed"))
        if method == "MultiInference":
            return
        path = f"examples:{method.lower()}"
        body = {"signature_name": method.lower(), "examples": [{"number": 0.5}] * 3}
        assert post(server, path, body, "ads")[0] == 200
        status, error = post(server, path, body, "ads")
        assert status == 429
        assert "of which 2 are left, and a request has 3" in error


def test_a_new_file_counts_and_one_that_is_wrong_does_not(serve, connect, tmp_path, wait_until):
    wait = "--quota_config_file_poll_wait_seconds=0.05"
    with serve(f"quota {{ {NEVER} max_burst_rows: 5 }}", wait) as server:
        stubs, file = connect(server.target), tmp_path / "quotas.config"

        def ask(rows: int) -> str:
            answer = stubs.prediction.Predict.future(stubs.request(ranked(rows)), timeout=120)
            return str(answer.details())

        assert "may send 5 rows" in ask(6)
        for text, told in (
            ("quota {\n  max_rows: 7 }", "line 2, column 11"),
            ("quota { } quota { max_burst_rows: 0 }", "quota 2: max_burst_rows: 0, expected"),
        ):
            file.write_text(text)
            wait_until(lambda told=told: told in server.log())
            assert str(file) in server.log()
            assert "may send 5 rows" in ask(6)
        file.write_text(f"quota {{ {NEVER} max_burst_rows: 7 }}")
        wait_until(lambda: "may send 7 rows" in ask(8))
        assert server.log().count("the quotas stay as they are") == 2


@pytest.mark.parametrize(
    ("quotas", "told"),
    [
        ("quota { model: 3 }", "line 1, column 16"),
        ("quota { max_rows_per_second: -2 }", "quota 1: max_rows_per_second: -2, expected"),
    ],
)
def test_a_server_does_not_start_with_a_file_that_is_wrong(serve, tmp_path, quotas, told):
    with pytest.raises(ServerFailedError) as failed, serve(quotas):
        pass
    assert f"--quota_config_file: {tmp_path / 'quotas.config'}" in str(failed.value)
    assert told in str(failed.value)


def test_a_quota_for_a_caller_needs_a_place_for_the_name(models, tmp_path):
    file = tmp_path / "quotas.config"
    file.write_text('quota { caller: "batch" }')
    with (
        pytest.raises(ServerFailedError, match='caller "batch" needs --caller_header or'),
        ServerProcess(flags=[models, f"--quota_config_file={file}"]),
    ):
        pass
