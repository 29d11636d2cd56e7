"""The evaluation of a run's calls: figures, progress, compared answers."""

import math
from io import StringIO
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.loadtest.measure.correctness import check, outputs_difference, reference_answers
from colcast.loadtest.measure.recording import Recording, Sample
from colcast.loadtest.report.output import windows_shown
from colcast.loadtest.send.connection import Answer, Request
from rich.console import Console
from tensorflow_serving.apis import predict_pb2

REQUEST = Request(b"12345", rows=3)


def recording(*sent_and_answered: tuple[float, float], wall: float = 1.0) -> Recording:
    found = Recording(wall_seconds=wall)
    for sent, answered in sent_and_answered:
        found.add(REQUEST, Answer("OK", b"xx", "", 100 + sent, 100 + answered), began=100.0)
    return found


def test_a_latency_runs_from_the_time_the_call_was_due():
    found = Recording()
    found.add(REQUEST, Answer("OK", b"", "", 100.4, 100.5), began=100.0, due=0.1)
    assert found.latencies.tolist() == pytest.approx([0.4])
    assert found.lateness.tolist() == pytest.approx([0.3])


def test_a_client_that_waits_is_never_late():
    found = recording((0.2, 0.5))
    assert found.lateness.tolist() == [0.0]
    assert found.latency_ms(50) == pytest.approx(300)


def test_runs_one_after_the_other_are_put_on_one_time_line():
    found = recording((0.0, 0.5), wall=2.0)
    found.extend(recording((0.25, 0.5), wall=1.0))
    assert [call.sent for call in found.calls] == pytest.approx([0.0, 2.25])
    assert found.wall_seconds == 3.0
    assert found.latencies.tolist() == pytest.approx([0.5, 0.25])


def test_cpu_seconds_of_joined_runs_add_up():
    found = Recording()
    for cpu in (0.5, 0.25):
        run = recording((0.0, 0.1))
        run.server_cpu_seconds = cpu
        found.extend(run)
    assert found.server_cpu_ms == pytest.approx(375)


def test_figures_of_nothing_are_not_a_number_rather_than_zero():
    nothing = Recording()
    figures = [nothing.server_cpu_ms, nothing.bytes_per_request, nothing.latency_ms(99)]
    assert all(math.isnan(figure) for figure in figures)
    assert nothing.errors == 0
    assert np.isnan(recording((0.0, 0.1)).server_cpu_ms)


def test_elsewhere_each_window_after_ten_seconds_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    console = Console(file=StringIO())
    with windows_shown(console, "colcast loadtest", 3, 5.0) as measured:
        measured("figures")
        assert capsys.readouterr().err == ""
        monkeypatch.setattr("colcast.cli.console._QUIET_SECONDS", 0.0)
        measured("figures")
        assert "window 3 of 3, about 5 s left" in capsys.readouterr().err
        measured("figures")
        assert capsys.readouterr().err == ""


def test_a_terminal_shows_a_temporary_bar_above_the_figures():
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    with windows_shown(console, "colcast loadtest", 3, 5.0) as measured:
        assert "0/3" in screen.getvalue()
        measured("figures so far")
        assert "1/3" in screen.getvalue()
        assert "figures so far" in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[2K")  # the last line is erased


REQUESTS = [Request(b"", rows=1)] * 2


def response(**outputs: Any) -> bytes:
    message = predict_pb2.PredictResponse()
    for name, values in outputs.items():
        message.outputs[name].CopyFrom(tf.make_tensor_proto(values))
    return bytes(message.SerializeToString())


@pytest.mark.parametrize(
    ("expected", "got", "difference"),
    [
        ([0.5, 0.25], [0.5, 0.25], 0.0),
        ([0.5, 0.25], [0.5, 0.5], 0.25),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [np.nan, 3.0], 2.0),
        ([np.inf], [np.inf], 0.0),
        ([np.nan], [1.0], np.inf),
        ([np.inf], [1.0], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
        ([1.0], [1], np.inf),
        ([b"a"], [b"a"], 0.0),
        ([b"a"], [b"b"], np.inf),
        ([True], [False], 1.0),
        ([], [], 0.0),
    ],
)
def test_the_difference_of_two_outputs(expected: list, got: list, difference: float):
    one, two = (np.array(values) for values in (expected, got))
    one, two = (v.astype(object) if v.dtype.kind == "S" else v for v in (one, two))
    assert outputs_difference({"score": one}, {"score": two}) == difference


def test_a_missing_output_counts_as_infinitely_wrong():
    assert outputs_difference({"a": np.zeros(1)}, {"b": np.zeros(1)}) == np.inf


def test_samples_are_compared_with_their_own_requests_answer():
    expected = [{"score": np.array([0.1], np.float32)}, {"score": np.array([0.9], np.float32)}]
    samples = [
        Sample(0, response(score=np.array([0.1], np.float32))),
        Sample(1, response(score=np.array([0.9], np.float32))),
        Sample(0, response(score=np.array([0.9], np.float32))),
    ]
    found = check(samples, REQUESTS, expected, tolerance=1e-6)
    assert (found.checked, found.wrong) == (3, 1)
    assert found.largest == pytest.approx(0.8)


def test_an_answer_that_cannot_be_read_is_wrong():
    found = check([Sample(0, b"\xff")], REQUESTS, [{"score": np.zeros(1)}], tolerance=1.0)
    assert (found.wrong, found.largest) == (1, np.inf)


def test_differences_within_the_tolerance_are_not_wrong():
    sample = Sample(0, response(score=[0.5 + 1e-7]))
    assert check([sample], REQUESTS, [{"score": np.array([0.5], np.float32)}], 1e-5).wrong == 0


def test_a_request_the_server_refuses_is_named(serve: Any):
    def refuse(request: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no input 'x'")
        raise AssertionError

    target = serve(refuse)
    with pytest.raises(RuntimeError, match=r"request 0 is refused, INVALID_ARGUMENT: no input 'x'"):
        reference_answers(target, [Request(b"", rows=1)])
