"""What XLA compiles for every number of candidates: the export says so, and what to do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.cli.main import main
from colcast.client import RankingClient
from colcast.export import ExportError, export_saved_model
from colcast.export.report._recorded import read_report
from colcast.server import ServerProcess
from tensorflow.compiler.tf2xla.python import xla

from ..models.saving import save_parser
from .conftest import example

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
    """An XlaCallModule, as jax2tf writes it by default."""
    (found,) = xla.call_module(
        arguments, version=9, Tout=[tf.float32], Sout=[shape], module=source, platforms=["CPU"]
    )
    return found


def product(features: Any) -> Any:
    """A module of user and items."""
    return module(_PRODUCT, [None], features["user_vector"], features["item_vector"])


def towers(features: Any) -> Any:
    """A module of the user, and what meets items behind it."""
    user = module(_DOUBLED, [None, 3], features["user_vector"])
    return tf.reduce_sum(user * features["item_vector"], 1)


def saved(folder: Path, score: Callable[[Any], Any] = product) -> Path:
    return save_parser(folder / "model", tf.Module(), SPEC, tf.function(score, autograph=False))


def request(rows: int) -> tuple[Any, Any]:
    random = np.random.default_rng(rows)
    return tuple(random.normal(size=shape).astype(np.float32) for shape in (3, (rows, 3)))


def test_the_verdict_names_the_signature_its_cost_and_warm_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", "--saved-model", str(saved(tmp_path)), "--output", str(tmp_path / "1")]
    assert main(command) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "XLA compiles columnar anew for every number of candidates it meets: " in printed
    assert "ms of CPU each, measured here" in printed
    assert "next step: --warmup with the numbers of candidates that requests have" in printed
    recorded = json.loads((tmp_path / "1" / "assets.extra" / "colcast.json").read_text())
    compiled = recorded["signatures"]["columnar"]["compiled"]
    assert compiled["ops"] == 1
    assert compiled["cpu_ms"] > 0
    (report,) = read_report(tmp_path / "1").signatures
    assert report.compiled.ops == 1
    assert not report.independence["columnar"].rows


def test_with_warm_up_the_verdict_says_what_is_left(tmp_path: Path) -> None:
    report = export_saved_model(saved(tmp_path), tmp_path / "1", warmup=[20, 100])
    (signature,) = report.signatures
    told = signature.compiled.told("columnar")
    assert "but for those of its warm-up requests (20, 100)" in told


def test_late_is_refused_where_a_module_takes_user_and_items(tmp_path: Path) -> None:
    wanted = r"--late gains nothing: .*XlaCallModule.*native_serialization=False, enable_xla=False"
    with pytest.raises(ExportError, match=wanted):
        export_saved_model(saved(tmp_path), tmp_path / "1", user_features=["user_*"], late=True)
    assert not (tmp_path / "1").exists()


def test_late_is_not_refused_where_a_module_takes_the_user_alone(tmp_path: Path) -> None:
    model = saved(tmp_path, towers)
    (report,) = export_saved_model(
        model, tmp_path / "1", user_features=["user_*"], late=True
    ).signatures
    assert report.late.signature == "columnar_late"
    assert report.compiled.ops == 1


def test_a_server_gives_the_models_scores_at_numbers_warmed_up_and_not(tmp_path: Path) -> None:
    model = saved(tmp_path)
    export_saved_model(model, tmp_path / "served" / "1", user_features=["user_*"], warmup=[20])
    source = tf.saved_model.load(str(model)).signatures["serving_default"]
    served = tmp_path / "served"
    with ServerProcess("it", served) as server, RankingClient(server.target, "it") as client:
        for rows in (20, 3, 21, 1):
            user, items = request(rows)
            given = client.rank({"user_vector": user}, {"item_vector": items}).scores
            examples = [
                example(user_vector=user.tolist(), item_vector=item.tolist()) for item in items
            ]
            (expected,) = source(tf.constant(examples)).values()
            np.testing.assert_allclose(given, expected, rtol=1e-5)


def test_scores_stay_right_with_allowed_batch_sizes(tmp_path: Path) -> None:
    export_saved_model(saved(tmp_path), tmp_path / "served" / "1", user_features=["user_*"])
    parameters = tmp_path / "batching"
    parameters.write_text("max_batch_size { value: 64 } allowed_batch_sizes: 64")
    flags = ["--enable_batching", f"--batching_parameters_file={parameters}"]
    with (
        ServerProcess("it", tmp_path / "served", flags=flags) as server,
        RankingClient(server.target, "it") as client,
    ):
        user, items = request(5)
        given = client.rank({"user_vector": user}, {"item_vector": items}).scores
    np.testing.assert_allclose(given, items @ user, rtol=1e-5)


def test_a_signature_of_tensors_is_exported_for_its_warm_up(tmp_path: Path) -> None:
    specs = [tf.TensorSpec([None, 3], name=name) for name in SPEC]

    @tf.function(autograph=False, input_signature=specs)
    def serve(user_vector: Any, item_vector: Any) -> Any:
        return {"scores": product({"user_vector": user_vector, "item_vector": item_vector})}

    tf.saved_model.save(tf.Module(), str(tmp_path / "model"), signatures=serve)
    with pytest.raises(ExportError, match=r"serve it as it is, or add --late.* or --warmup"):
        export_saved_model(tmp_path / "model", tmp_path / "1")
    (report,) = export_saved_model(tmp_path / "model", tmp_path / "1", warmup=[7]).signatures
    assert report.parity.identical
    assert (tmp_path / "1" / "assets.extra" / "tf_serving_warmup_requests").exists()
