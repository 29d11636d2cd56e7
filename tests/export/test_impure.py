"""Models whose answers depend on more than the request and their files, or are not finite."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import ExportError, ExportReport, export_saved_model
from colcast.export.graph import _impure
from colcast.export.graph._comparison import Trial, compare_trials
from colcast.export.graph._impure import find_impure
from colcast.export.report._recorded import read_report
from colcast.export.report._verdict import verdict
from colcast.export.trials._both_signatures import _reason
from colcast.export.trials._parity import _check
from tensorflow.core.protobuf import saved_model_pb2

from ..models import impure
from ..models.saving import save_parser

SERVERS_ANALYSIS = Path(__file__).parents[2] / "server/engine/rewrites/impure_signatures.cc"
WHY = {
    "written_variable": 'which signature "set" writes',
    "mutable_table": 'which signature "set" writes',
    "clock": "(Timestamp) differs between runs",
    "random": "(RandomUniform) differs between runs",
    "counter": "it writes",
}


def export(folder: Path, kind: str, **options: Any) -> ExportReport:
    impure.save(folder / "model", kind)
    return export_saved_model(folder / "model", folder / "out", user_features=["user_*"], **options)


@pytest.mark.parametrize("kind", impure.KINDS)
def test_nothing_is_joined_kept_or_staged_and_the_reason_is_recorded(
    kind: str, tmp_path: Path
) -> None:
    provable = kind not in ("random", "counter")
    options = {"late": True} if provable else {"warmup": [1]}
    (report,) = export(tmp_path, kind, **options).signatures
    recorded = json.loads((tmp_path / "out/assets.extra/colcast.json").read_text())
    signature = recorded["signatures"]["columnar"]
    assert WHY[kind] in signature["impure"]
    assert set(signature["independence"]) == {"columnar", *report.once}
    for found in signature["independence"].values():
        assert not found["rows"]
        assert found["why_not"] == signature["impure"]
    if provable:
        assert not report.stages.written
        assert report.stages.reason == signature["impure"]
    assert WHY[kind] in dict(verdict(report))["limits"]
    assert read_report(tmp_path / "out").signatures[0].impure == report.impure


@pytest.mark.parametrize("kind", ["written_variable", "mutable_table"])
def test_variables_that_only_unserved_signatures_write_count_as_constant(
    kind: str, tmp_path: Path
) -> None:
    (report,) = export(tmp_path, kind, late=True, unserved_signatures=["set"]).signatures
    assert report.impure is None
    assert report.stages.written, report.stages.reason
    assert all(found.rows for found in report.independence.values())


def test_examples_are_sent_unchanged_to_a_writing_signature(tmp_path: Path) -> None:
    class Counter(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.asked = tf.Variable(0.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
        def serve(self, examples: Any) -> Any:
            spec = {"price": tf.io.FixedLenFeature([1], tf.float32)}
            price = tf.io.parse_example(examples, spec)["price"]
            return {"score": price * self.asked.assign_add(1.0)}

    module = Counter()
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.serve)
    (report,) = export_saved_model(tmp_path / "model", tmp_path / "out").signatures
    assert report.not_transcoded is not None
    assert report.not_transcoded.startswith('it writes "')


def test_a_call_writes_only_what_its_function_writes(tmp_path: Path) -> None:
    class Both(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.read = tf.Variable(1.0, name="read")
            self.written = tf.Variable(1.0, name="written")

        @tf.function(input_signature=[tf.TensorSpec([None], name="x")])
        def update(self, x: Any) -> Any:
            by = tf.cond(tf.reduce_sum(x) > 0, lambda: self.read * 2, lambda: self.read)
            return {"y": x * self.written.assign_add(by)}

        @tf.function(input_signature=[tf.TensorSpec([None], name="x")])
        def score(self, x: Any) -> Any:
            return {"y": x * self.read}

    module = Both()
    signatures = {"score": module.score, "update": module.update}
    tf.saved_model.save(module, str(tmp_path), signatures=signatures)
    proto = saved_model_pb2.SavedModel.FromString((tmp_path / "saved_model.pb").read_bytes())
    found = find_impure(proto.meta_graphs[0])
    assert list(found) == ["update"]
    assert found["update"].writes
    assert "written" in found["update"].why


@pytest.mark.parametrize(
    "name", ["harmless", "harmless_prefixes", "handles", "pass_on", "read_files"]
)
def test_the_server_and_the_exporter_know_the_same_ops(name):
    listed = "k" + name.title().replace("_", "")
    found = re.search(rf" {listed}\[\] = \{{(.*?)\}};", SERVERS_ANALYSIS.read_text(), re.DOTALL)
    assert found
    assert {*re.findall(r'"(\w+)"', found[1])} == {*getattr(_impure, f"_{name.upper()}")}


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_proof_that_fails_on_non_finite_values_says_so(value: float) -> None:
    expected = {"scores": np.array([1.0, value], np.float32)}
    given = {"scores": np.array([1.0, 2.0], np.float32)}
    trial = Trial(2, expected, given)
    with pytest.raises(ExportError, match=r"NaN or infinite.*--examples"):
        compare_trials([trial], 1e-5)
    with pytest.raises(ExportError, match=r"NaN or infinite.*--examples"):
        _check(np.inf, "scores", expected["scores"], given["scores"])


def test_a_proof_that_fails_on_finite_values_does_not() -> None:
    scores = np.array([1.0, 2.0], np.float32)
    trial = Trial(2, {"scores": scores}, {"scores": 2 * scores})
    with pytest.raises(ExportError) as failed:
        compare_trials([trial], 1e-5)
    assert "--examples" not in str(failed.value)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("2 root errors\n  (0) no such id\n\n\t [[{{node x}}]]", "(0) no such id"),
        ("no such id\n\n\n\t [[{{node x}}]]", "no such id"),
        ("\n\t [[{{node x}}]]", "[[{{node x}}]]"),
        ("", "InvalidArgumentError"),
    ],
)
def test_a_refusal_always_has_a_reason(said: str, reason: str) -> None:
    assert _reason(tf.errors.InvalidArgumentError(None, None, said)) == reason


def test_a_model_that_takes_the_log_of_a_price_keeps_its_stages(tmp_path: Path) -> None:
    """Half of the generated prices are negative, and their scores NaN."""
    spec = {
        "user_city": tf.io.FixedLenFeature([], tf.int64),
        "price": tf.io.FixedLenFeature([], tf.float32),
        "item_shop": tf.io.FixedLenFeature([], tf.int64),
    }
    random = np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        return tf.constant(random.normal(size=shape), tf.float32)

    tables, products = weights(2, 1000, 32), (weights(32, 64), weights(33, 64))

    def score(parsed: Any) -> Any:
        user = tf.gather(tables[0], parsed["user_city"] % 1000) @ products[0]
        price = tf.math.log(parsed["price"])[:, None]
        shop = tf.gather(tables[1], parsed["item_shop"] % 1000)
        item = tf.concat([shop, price], 1) @ products[1]
        return tf.reduce_sum(tf.nn.relu(user) * tf.nn.relu(item), 1)

    save_parser(tmp_path / "model", tf.Module(), spec, score)
    export_saved_model(tmp_path / "model", tmp_path / "out", user_features=["user_*"], late=True)
    record = json.loads((tmp_path / "out" / "assets.extra" / "colcast.json").read_text())
    kept = record["signatures"]["columnar"]["independence"]
    assert {"columnar_late", "columnar_user", "columnar_item"} <= set(kept)
