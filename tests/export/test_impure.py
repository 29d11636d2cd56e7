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
from colcast.export.report._verdict import verdict
from colcast.export.trials._parity import _check
from tensorflow.core.protobuf import saved_model_pb2

from ..models import impure
from .conftest import X

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


@pytest.mark.parametrize("kind", ["written_variable", "mutable_table"])
def test_variables_that_only_unserved_signatures_write_count_as_constant(
    kind: str, tmp_path: Path
) -> None:
    (report,) = export(tmp_path, kind, late=True, unserved_signatures=["set"]).signatures
    assert report.impure is None
    assert report.stages.written, report.stages.reason
    assert all(found.rows for found in report.independence.values())


def test_examples_are_sent_unchanged_to_a_writing_signature(exported_report: Any) -> None:
    asked = tf.Variable(0.0)

    def score(parsed: Any) -> Any:
        return parsed["x"] * asked.assign_add(1.0)

    report = exported_report(X, score, asked)
    assert report.not_transcoded is not None
    assert report.not_transcoded.startswith('it writes "')


def test_a_call_writes_only_what_its_function_writes(tmp_path: Path) -> None:
    module = tf.Module()
    module.read, module.written = (tf.Variable(1.0, name=name) for name in ("read", "written"))
    takes = [tf.TensorSpec([None], name="x")]

    @tf.function(input_signature=takes)
    def update(x: Any) -> Any:
        by = tf.cond(tf.reduce_sum(x) > 0, lambda: module.read * 2, lambda: module.read)
        return {"y": x * module.written.assign_add(by)}

    score = tf.function(lambda x: {"y": x * module.read}, input_signature=takes)
    tf.saved_model.save(module, str(tmp_path), signatures={"score": score, "update": update})
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
