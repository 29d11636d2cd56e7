"""Models with loops: a generated number may be taken for a number of steps, or never be reached."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.export import ExportError, export_saved_model
from colcast.export.cut import _timing
from colcast.export.graph import _findings
from colcast.export.graph._errors import TooLongError
from colcast.export.graph._signature import Signature
from colcast.export.trials import _both_signatures
from colcast.export.trials._both_signatures import BothSignatures


def saved(folder: Path, dtype: Any, condition: Any, body: Any, reduce: Any = tf.reduce_max) -> Path:
    """A model that computes the user's part in a loop over the user's number."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], dtype, "user_number"),
            tf.TensorSpec([None, 4], tf.float32, "user_vector"),
            tf.TensorSpec([None, 4], tf.float32, "item_vector"),
        ]
    )
    def serve(user_number: Any, user_vector: Any, item_vector: Any) -> Any:
        number = reduce(user_number)
        start = [tf.zeros([], dtype), user_vector]
        _, state = tf.while_loop(
            lambda at, _: condition(at, number),
            lambda at, state: (body(at, number), tf.tanh(state * 1.1)),
            start,
            maximum_iterations=None,
        )
        return {"scores": tf.reduce_sum(state * item_vector, 1)}

    tf.saved_model.save(tf.Module(), str(folder), signatures=serve)
    return folder


def export(folder: Path, output: Path, **options: Any) -> Any:
    return export_saved_model(folder, output, user_features=["user_*"], late=True, **options)


def test_a_number_of_steps_is_not_made_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step takes microseconds, so without a bound 65,535 of them would be accepted."""
    model = saved(tmp_path / "model", tf.int64, lambda at, n: at < n, lambda at, _: at + 1)
    steps: list[int] = []
    columnar = BothSignatures.columnar

    def watched(probe: BothSignatures, rows: Any) -> Any:
        steps.append(rows.columns()["user_number"].max())
        return columnar(probe, rows)

    monkeypatch.setattr(BothSignatures, "columnar", watched)
    monkeypatch.setattr(_both_signatures, "_READILY_SECONDS", 0.05)
    report = export(model, tmp_path / "out")
    assert report.signatures[0].late is not None
    assert 1 <= max(steps) < 1 << 15


def test_a_loop_that_never_ends_is_named_with_its_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_both_signatures, "_FIRST_RUN_SECONDS", 2)
    monkeypatch.setattr(_both_signatures, "_RUN_SECONDS", 0.2)
    model = saved(tmp_path / "model", tf.float32, lambda at, n: n < 2e9, lambda at, _: at)
    arguments = ["export", "--saved-model", str(model), "--output", str(tmp_path / "out")]
    assert main([*arguments, "--late", "--user-features", "user_*"]) == 1
    message = capsys.readouterr().err
    assert "not done within" in message
    assert "while (StatelessWhile) over" in message
    assert "user_number" in message
    assert not (tmp_path / "out").exists()


def test_small_values_that_the_model_cannot_take_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers below one never reach the end; rows that it accepts all have one."""
    monkeypatch.setattr(_findings, "_FIRST_RUN_SECONDS", 2)
    monkeypatch.setattr(_findings, "_RUN_SECONDS", 0.5)
    monkeypatch.setattr(_both_signatures, "_READILY_SECONDS", 0.05)
    model = saved(
        tmp_path / "model",
        tf.float32,
        lambda at, _: at < 3.0,
        lambda at, n: at + tf.round(n),
        tf.reduce_min,
    )
    report = export(model, tmp_path / "out")
    assert report.signatures[0].parity.rows > 0
    assert report.signatures[0].late is not None


def test_a_run_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_findings, "_FIRST_RUN_SECONDS", 0.5)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        steps = tf.compat.v1.placeholder(tf.int64, [None], "steps")
        most = tf.reduce_max(steps)
        (last,) = tf.while_loop(lambda at: at < most, lambda at: at + 1, [tf.constant(0, tf.int64)])
        probe = _findings.Probe(session, {"user_steps": steps.name}, {"last": last.name})
        with pytest.raises(
            ExportError, match=r"not done with generated columns .* over user_steps"
        ):
            probe({"user_steps": np.array([1 << 62])})


def test_a_timed_run_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_timing, "_RUN_SECONDS", 1)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        steps = tf.compat.v1.placeholder(tf.int64, [None], "steps")
        most = tf.reduce_max(steps)
        (last,) = tf.while_loop(lambda at: at < most, lambda at: at + 1, [tf.constant(0, tf.int64)])
        signature = Signature({"user_steps": steps.name}, {}, {}, {"last": last.name})
        assert _timing.op_times(session, [(signature, {"user_steps": np.array([3])})])
        with pytest.raises(TooLongError, match=r"timed is not done within 1 s.* over user_steps"):
            _timing.op_times(session, [(signature, {"user_steps": np.array([1 << 62])})])


def test_each_step_of_an_export_is_told(tmp_path: Path) -> None:
    model = saved(tmp_path / "model", tf.int64, lambda at, n: at < 3, lambda at, _: at + 1)
    told: list[str] = []
    export(model, tmp_path / "out", progress=told.append)
    assert [step.partition(":")[0] for step in told[1:]] == [
        *("columnar", "columnar", "columnar_late", "columnar_exact", "columnar", "columnar")
    ]
