"""Models and dtypes, converted: columns and tf.Examples get bit-identical scores."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import export_saved_model
from colcast.export.convert._features import DTYPES
from colcast.export.convert._folder import loaded, read_saved_model

from ..models.examples import MODELS, NOT_RANKED
from .conftest import served


@pytest.mark.parametrize("model", [*MODELS, *NOT_RANKED], ids=lambda model: model.name)
def test_generated_and_recorded_examples_are_scored_to_the_last_bit(model, tmp_path):
    model.build(tmp_path / "model")
    recorded = tmp_path / "recorded"
    with tf.io.TFRecordWriter(str(recorded)) as writer:
        for example in model.examples(50, seed=1):
            writer.write(example)
    report = export_saved_model(tmp_path / "model", tmp_path / "out", examples=recorded)
    assert report.signatures[0].parity.identical
    assert report.signatures[0].parity.recorded_rows == 50


LISTED = Path(__file__).parents[2] / "docs" / "wire.md"


def number(column: Any) -> Any:
    """Casts a column [rows] to float32; a string becomes its length."""
    if column.dtype == tf.string:
        column = tf.strings.length(column)
    return tf.cast(column, tf.float32)


def test_the_export_takes_what_the_docs_list() -> None:
    table = LISTED.read_text().partition("| dtype | number |")[2].partition("\n\n")[0]
    listed = [row.split("|")[1] for row in table.splitlines()[2:]]
    assert sorted(re.findall(r"\w+", " ".join(listed))) == sorted(DTYPES)


def test_columns_of_each_dtype_are_scored_as_the_model_scores_them(exported_report: Any) -> None:
    def score(*columns: Any) -> Any:
        of_user, of_items = columns[: len(DTYPES)], columns[len(DTYPES) :]
        pairs = zip(map(number, of_user), map(number, of_items), strict=True)
        return {"scores": tf.add_n([tf.tanh(user * (1.0 + item) / 10) for user, item in pairs])}

    names = [(side, dtype) for side in ("user", "item") for dtype in DTYPES]
    takes = [tf.TensorSpec([None], dtype, f"{side}_{dtype}") for side, dtype in names]
    report = exported_report(takes, score, user_features=["user_*"], late=True, warmup=[2])
    assert {feature.name: feature.dtype for feature in report.features} == {
        f"{side}_{dtype}": dtype for side, dtype in names
    }
    assert report.parity.identical
    assert report.late.user_ops > 0


def test_a_session_holds_a_signature_its_variables_and_its_tables(embedded, embedded_examples):
    (meta_graph,) = read_saved_model(embedded).meta_graphs
    info = meta_graph.signature_def["serving_default"]
    with loaded(embedded, meta_graph, ["serving_default"]) as session, served(embedded) as model:
        called = {o.get_attr("f").name for o in session.graph.get_operations() if "Call" in o.type}
        feeds = {info.inputs["examples"].name: embedded_examples}
        scores = session.run(info.outputs["scores"].name, feeds)
        expected = model.run("serving_default", {"examples": embedded_examples})["scores"]
    np.testing.assert_array_equal(scores, expected)
    assert any("restore" in name for name in called)
    assert not any("traced_save" in name for name in called)
