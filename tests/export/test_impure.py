"""What an export says of models that answer by more than a request and their own files."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from colcast.export import ExportReport, export_saved_model
from colcast.export.graph import _impure
from colcast.export.graph._impure import find_impure
from colcast.export.report._recorded import read_report
from colcast.export.report._verdict import verdict
from tensorflow.core.protobuf import saved_model_pb2

from ..models import impure

SERVERS_ANALYSIS = Path(__file__).parents[2] / "server/engine/rewrites/impure_signatures.cc"
WHY = {
    "written_variable": 'which signature "set" writes',
    "mutable_table": 'which signature "set" writes',
    "clock": "(Timestamp) gives something else in each run",
    "random": "(RandomUniform) gives something else in each run",
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
def test_what_only_an_unserved_signature_writes_is_as_good_as_constant(
    kind: str, tmp_path: Path
) -> None:
    (report,) = export(tmp_path, kind, late=True, unserved_signatures=["set"]).signatures
    assert report.impure is None
    assert report.stages.written, report.stages.reason
    assert all(found.rows for found in report.independence.values())


def test_examples_are_left_to_a_source_that_writes(tmp_path: Path) -> None:
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


def test_a_call_writes_what_its_function_writes_and_nothing_else(tmp_path: Path) -> None:
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
