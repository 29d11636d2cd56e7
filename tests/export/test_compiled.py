"""Models that depend on the number of candidates or steps: compiled by XLA, or with loops."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.export import ExportError
from colcast.export.cut import _timing
from colcast.export.graph import _probe
from colcast.export.graph._errors import TooLongError
from colcast.export.graph._signature import Signature
from colcast.export.report._recorded import read_record
from colcast.export.trials import _both_signatures
from colcast.export.trials._both_signatures import BothSignatures
from tensorflow.compiler.tf2xla.python import xla

from .conftest import save

SPEC = {
    "user_vector": tf.io.FixedLenFeature([3], tf.float32),
    "item_vector": tf.io.FixedLenFeature([3], tf.float32),
}
_PRODUCT = b"""
module @jit_product attributes {jax.uses_shape_polymorphism = true} {
  func.func public @main(%user: tensor<?x3xf32>, %item: tensor<?x3xf32>) -> tensor<?xf32> {
    %products = stablehlo.multiply %user, %item : tensor<?x3xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %scores = stablehlo.reduce(%products init: %zero) applies stablehlo.add
      across dimensions = [1] : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
    return %scores : tensor<?xf32>
  }
}
"""
_DOUBLED = b"""
module @jit_doubled attributes {jax.uses_shape_polymorphism = true} {
  func.func public @main(%vector: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %sum = stablehlo.add %vector, %vector : tensor<?x3xf32>
    return %sum : tensor<?x3xf32>
  }
}
"""


def module(source: bytes, shape: list[int | None], *arguments: Any) -> Any:
    """Calls a compiled module the way jax2tf does by default."""
    (found,) = xla.call_module(
        arguments, version=9, Tout=[tf.float32], Sout=[shape], module=source, platforms=["CPU"]
    )
    return found


def product(features: Any) -> Any:
    """A module that reads user and items."""
    return module(_PRODUCT, [None], features["user_vector"], features["item_vector"])


def product_of_arguments(features: Any) -> Any:
    """The module as jax2tf names its arguments."""
    return product({name: tf.identity(value) for name, value in features.items()})


def towers(features: Any) -> Any:
    """A module that reads only the user, followed by ops that also read items."""
    user = module(_DOUBLED, [None, 3], features["user_vector"])
    return tf.reduce_sum(user * features["item_vector"], 1)


LATE: dict[str, Any] = {"user_features": ["user_*"], "late": True}


def test_the_verdict_names_the_signature_its_cost_and_warm_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path / "model", SPEC, product)
    folders = [f"--saved-model={tmp_path / 'model'}", f"--output={tmp_path / 'out'}"]
    assert main(["export", *folders]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "XLA compiles columnar again for each number of candidates" in printed
    assert "next step: --warmup with the numbers of candidates that requests have" in printed
    recorded = read_record(tmp_path / "out")["signatures"]["columnar"]
    assert recorded["compiled"]["ops"] == 1
    assert not recorded["independence"]["columnar"]["rows"]


@pytest.mark.parametrize("score", [product, product_of_arguments])
def test_late_is_refused_if_a_module_reads_user_and_items(
    tmp_path: Path, exported_report: Any, score: Any
) -> None:
    wanted = r"--late gains nothing: .*XlaCallModule.*native_serialization=False, enable_xla=False"
    with pytest.raises(ExportError, match=wanted):
        exported_report(SPEC, score, **LATE)
    assert not (tmp_path / "out").exists()


def test_late_is_not_refused_if_a_module_reads_only_the_user(exported_report: Any) -> None:
    report = exported_report(SPEC, towers, **LATE)
    assert report.late.signature == "columnar_late"
    assert report.compiled.ops == 1


def test_a_signature_of_tensors_is_exported_for_its_warm_up(
    tmp_path: Path, exported_report: Any
) -> None:
    def serve(user_vector: Any, item_vector: Any) -> Any:
        return {"scores": product({"user_vector": user_vector, "item_vector": item_vector})}

    specs = [tf.TensorSpec([None, 3], name=name) for name in SPEC]
    with pytest.raises(ExportError, match=r"serve it as it is, or add --late.* or --warmup"):
        exported_report(specs, serve)
    shutil.rmtree(tmp_path / "model")
    assert exported_report(specs, serve, warmup=[7]).parity.identical
    assert (tmp_path / "out" / "assets.extra" / "tf_serving_warmup_requests").exists()


def loop(
    dtype: Any, condition: Any, body: Any, reduce: Any = tf.reduce_max
) -> tuple[list[tf.TensorSpec], Any]:
    """A signature that computes the user's part in a loop as long as the user's number."""

    def serve(user_number: Any, user_vector: Any, item_vector: Any) -> Any:
        number = reduce(user_number)
        _, state = tf.while_loop(
            lambda at, _: condition(at, number),
            lambda at, state: (body(at, number), tf.tanh(state * 1.1)),
            [tf.zeros([], dtype), user_vector],
        )
        return {"scores": tf.reduce_sum(state * item_vector, 1)}

    vectors = [tf.TensorSpec([None, 4], name=f"{side}_vector") for side in ("user", "item")]
    return [tf.TensorSpec([None], dtype, "user_number"), *vectors], serve


def test_a_number_of_steps_is_not_drawn_large(
    exported_report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step takes microseconds, so only the limit on steps keeps the export from 65,535 steps."""
    steps: list[int] = []
    columnar = BothSignatures.columnar

    def watched(probe: BothSignatures, rows: Any) -> Any:
        steps.append(rows.columns()["user_number"].max())
        return columnar(probe, rows)

    monkeypatch.setattr(BothSignatures, "columnar", watched)
    monkeypatch.setattr(_both_signatures, "_READILY_SECONDS", 0.005)
    counting = loop(tf.int64, lambda at, n: at < n, lambda at, _: at + 1)
    assert exported_report(*counting, **LATE).late is not None
    assert 1 <= max(steps) < 1 << 15


def test_a_loop_that_never_ends_is_named_with_its_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_both_signatures, "_FIRST_RUN_SECONDS", 2)
    monkeypatch.setattr(_both_signatures, "_RUN_SECONDS", 0.2)
    endless = loop(tf.float32, lambda at, n: n < 2e9, lambda at, _: at)
    model = save(tmp_path / "model", *endless)
    arguments = ["export", "--saved-model", str(model), "--output", str(tmp_path / "out")]
    assert main([*arguments, "--late", "--user-features", "user_*"]) == 1
    message = capsys.readouterr().err
    assert "not finished within" in message
    assert "while (StatelessWhile) over" in message
    assert "user_number" in message
    assert not (tmp_path / "out").exists()


def test_small_values_that_the_model_cannot_take_are_left_out(
    exported_report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With numbers below one, the loop never ends, so the export must not generate such numbers."""
    monkeypatch.setattr(_probe, "_FIRST_RUN_SECONDS", 2)
    monkeypatch.setattr(_probe, "_RUN_SECONDS", 0.2)
    monkeypatch.setattr(_both_signatures, "_RUN_SECONDS", 0.2)
    monkeypatch.setattr(_both_signatures, "_READILY_SECONDS", 0.005)
    growing = lambda at, n: at + tf.round(n)  # noqa: E731
    small = loop(tf.float32, lambda at, _: at < 3, growing, tf.reduce_min)
    report = exported_report(*small, **LATE)
    assert report.parity.rows > 0
    assert report.late is not None


def test_a_timed_run_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_timing, "_RUN_SECONDS", 1)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        steps = tf.compat.v1.placeholder(tf.int64, [None], "steps")
        most = tf.reduce_max(steps)
        (last,) = tf.while_loop(lambda at: at < most, lambda at: at + 1, [tf.constant(0, tf.int64)])
        signature = Signature({"user_steps": steps.name}, {}, {}, {"last": last.name})
        assert _timing.op_times(session, [(signature, {"user_steps": np.array([3])})])
        with pytest.raises(TooLongError, match=r"did not finish within 1 s.* over user_steps"):
            _timing.op_times(session, [(signature, {"user_steps": np.array([1 << 62])})])
