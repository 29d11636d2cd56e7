"""Models and dtypes, converted: columns and tf.Examples get bit-identical scores."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.export.convert._features import DTYPES
from colcast.export.convert._folder import loaded, read_saved_model
from colcast.server import ServerProcess

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


DTYPE_ROWS = 3
LISTED = Path(__file__).parents[2] / "docs" / "wire.md"


def number(column: Any) -> Any:
    """Casts a column [rows] to float32; a string becomes its length."""
    if column.dtype == tf.string:
        column = tf.strings.length(column)
    return tf.cast(column, tf.float32)


@tf.function(
    input_signature=[
        {
            f"{side}_{dtype}": tf.TensorSpec([None], dtype, f"{side}_{dtype}")
            for side in ("user", "item")
            for dtype in DTYPES
        }
    ]
)
def serve(columns: dict[str, Any]) -> Any:
    """Returns a score that depends on each column."""
    sums = [
        number(columns[f"user_{dtype}"]) * (1.0 + number(columns[f"item_{dtype}"]))
        for dtype in DTYPES
    ]
    return {"scores": tf.add_n([tf.tanh(each / 10) for each in sums])}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the original, `model`, and its export, `served/1`."""
    folder = tmp_path_factory.mktemp("dtypes")
    tf.saved_model.save(tf.Module(), str(folder / "model"), signatures=serve)
    model, served = folder / "model", folder / "served" / "1"
    export_saved_model(model, served, user_features=["user_*"], late=True, warmup=[2])
    return folder


@pytest.fixture(scope="module")
def client(exported: Path) -> Iterator[RankingClient]:
    """A client of the native server."""
    with (
        ServerProcess("dtypes", exported / "served") as server,
        RankingClient(server.target, "dtypes", timeout_seconds=60) as client,
    ):
        yield client


def values(dtype: str, count: int) -> list[Any]:
    """`count` values of a dtype, different ones where it has that many."""
    if dtype == "string":
        return ["x" * (1 + n) for n in range(count)]
    return [n % 2 == 0 for n in range(count)] if dtype == "bool" else [1 + n for n in range(count)]


def test_the_export_takes_what_the_docs_list() -> None:
    table = LISTED.read_text().partition("| dtype | number |")[2].partition("\n\n")[0]
    listed = [row.split("|")[1] for row in table.splitlines()[2:]]
    assert sorted(re.findall(r"\w+", " ".join(listed))) == sorted(DTYPES)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_column_of_each_dtype_is_scored_as_the_model_scores_it(
    exported: Path, client: RankingClient, dtype: str
) -> None:
    user = {f"user_{each}": values(each, 1)[0] for each in DTYPES}
    items = {f"item_{each}": [values(each, 1)[0]] * DTYPE_ROWS for each in DTYPES}
    items[f"item_{dtype}"] = values(dtype, DTYPE_ROWS)
    columns = items | {name: [value] * DTYPE_ROWS for name, value in user.items()}
    tensors = {name: tf.constant(c, name.partition("_")[2]) for name, c in columns.items()}
    expected = serve(tensors)["scores"].numpy()
    assert len(set(expected.tolist())) > 1
    for target in ("late", "columnar", "stock", "repeated"):
        given = client.rank(user, items, target=target).scores
        np.testing.assert_allclose(given, expected, rtol=1e-5)


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
