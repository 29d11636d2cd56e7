"""Served decision forests give the answers of TF-DF, which trained them, and of TensorFlow."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import ydf
import ydf_tf  # noqa: F401  the ops of the graphs
from numpy.testing import assert_allclose, assert_array_equal

from ..other_environment import ESTIMATOR
from .servers import Stubs

NAMES = ["clicked", "genre", "spent"]
USER = ["age", "country", "sections"]

Columns = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if ESTIMATOR.package("tensorflow_decision_forests") is None:
        pytest.skip("TF-DF needs TensorFlow 2.15: make setup-estimator")
    folder = tmp_path_factory.mktemp("forests")
    ESTIMATOR.run("server/forests.py", folder)
    return folder


@pytest.fixture(scope="module")
def forests(trained: Path, serve: Any) -> dict[str, Stubs]:
    """Stubs of all forests by name."""
    return {name: serve(trained / name) for name in NAMES}


def rows_of(trained: Path, name: str) -> tuple[Columns, np.ndarray]:
    """The features of recorded rows, and TF-DF's answers."""
    with np.load(trained / name / "rows.npz") as file:
        columns = dict(file)
    return columns, columns.pop("expected")


@pytest.mark.parametrize("name", NAMES)
def test_a_forest_of_tf_df_scores_as_it_did_there(trained: Path, forests, name: str) -> None:
    columns, expected = rows_of(trained, name)
    assert np.isnan(columns["price"]).any()
    assert (columns["country"] == b"").any()
    assert len(np.unique(expected)) > 20
    (scores,) = forests[name].predict(columns).values()
    assert_allclose(scores, expected, rtol=1e-6)
    model = tf.saved_model.load(str(trained / name / "1")).signatures["serving_default"]
    (here,) = model(**{column: tf.constant(values) for column, values in columns.items()}).values()
    assert_array_equal(scores, here)


def test_the_user_may_be_sent_once(trained: Path, forests) -> None:
    columns, _ = rows_of(trained, "clicked")
    stubs, rows = forests["clicked"], len(columns["age"])
    once = {**columns, "age": columns["age"][:1], "country": columns["country"][:1]}
    repeated = {**once, **{name: once[name].repeat(rows) for name in ("age", "country")}}
    (scores,) = stubs.predict(once).values()
    assert_array_equal(scores, *stubs.predict(repeated).values())


def draw(count: int, seed: int) -> dict[str, Any]:
    """Random features; some are missing, and the user's sections are a set of any size."""
    random = np.random.default_rng(seed)
    price = random.lognormal(size=count).astype(np.float32)
    price[random.random(count) < 0.2] = np.nan
    sections = np.empty(count, object)
    sections[:] = [random.choice([*"abcd"], random.integers(0, 4)).tolist() for _ in price]
    return {
        "age": random.integers(18, 80, count).astype(np.float32),
        "country": random.choice(["de", "fr", "us", ""], count),
        "sections": sections,
        "price": price,
    }


def example(columns: dict[str, Any], row: int) -> bytes:
    """A row as a serialized tf.Example, which omits missing values."""
    proto = tf.train.Example()
    for name in ("age", "price"):
        if not np.isnan(columns[name][row]):
            proto.features.feature[name].float_list.value.append(columns[name][row])
    for name, values in (
        ("country", [columns["country"][row]]),
        ("sections", columns["sections"][row]),
    ):
        if any(values):
            proto.features.feature[name].bytes_list.value.extend(v.encode() for v in values)
    return proto.SerializeToString()


def padded(columns: dict[str, Any], user: slice = slice(None)) -> Columns:
    """The inputs of the columnar signatures; `user` selects the user's rows."""
    lists = columns["sections"][user]
    sections = np.full((len(lists), max(map(len, lists))), "", object)
    for row, values in enumerate(lists):
        sections[row, : len(values)] = values
    return {
        "age": columns["age"][user],
        "country": columns["country"][user].astype(object),
        "sections": sections,
        "sections/length": np.array([len(one) for one in lists], np.int64),
        "price": columns["price"],
    }


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A YDF forest that takes tf.Examples, and the base path of its export."""
    folder, columns = tmp_path_factory.mktemp("ydf"), draw(2000, 7)
    chance = 0.4 * np.array(["a" in one for one in columns["sections"]])
    chance += 0.3 * (np.nan_to_num(columns["price"], nan=3.0) < 1.5) * (columns["country"] != "us")
    clicked = (np.random.default_rng(7).random(2000) < chance + columns["age"] / 300).astype(int)
    learner = ydf.GradientBoostedTreesLearner(
        label="clicked",
        num_trees=30,
        features=[("sections", ydf.Semantic.CATEGORICAL_SET)],
        include_all_columns=True,
    )
    forest = learner.train({**columns, "clicked": clicked}, verbose=0)
    forest.to_tensorflow_saved_model(str(folder / "1"), feed_example_proto=True)
    # The export must load the ops itself, so it runs in a process that has not loaded them.
    command = [sys.executable, "-m", "colcast.cli.main", "export"]
    folders = ["--saved-model", folder / "1", "--output", folder / "served" / "1"]
    options = ["--late", "--user-features", *USER]
    subprocess.run([*command, *folders, *options], check=True, capture_output=True)
    return forest, folder / "served"


@pytest.fixture(scope="module")
def stubs(exported: tuple[Any, Path], serve: Any) -> Stubs:
    return serve(exported[1])


def test_columns_of_a_forest_score_as_its_tf_examples(exported, stubs: Stubs) -> None:
    forest, base_path = exported
    columns = draw(200, 11)
    examples = [example(columns, row) for row in range(200)]
    model = tf.saved_model.load(str(base_path / "1")).signatures["serving_default"]
    expected = model(inputs=tf.constant(examples))["output"]
    assert len(np.unique(expected)) > 20
    assert_allclose(expected, forest.predict(columns), rtol=1e-6)
    assert_array_equal(stubs.predict({"inputs": examples})["output"], expected)
    scores = stubs.predict(padded(columns), signature_name="columnar")["output"]
    assert_array_equal(scores, expected)


@pytest.mark.parametrize("user", range(4))
def test_a_user_of_a_forest_is_sent_once(stubs: Stubs, user: int) -> None:
    columns = draw(100, 13)
    for name in USER:
        columns[name] = columns[name][[user] * 100]
    repeated = stubs.predict(padded(columns), signature_name="columnar")["output"]
    once = padded(columns, slice(1))
    for signature in ("columnar", "columnar_late"):
        assert_array_equal(stubs.predict(once, signature_name=signature)["output"], repeated)


def test_the_op_of_a_forest_does_not_turn_tensorflows_messages_on(stubs: Stubs) -> None:
    log = stubs.server.log()
    assert not re.findall(r"^(?:I\d{4} |WARNING: All log messages).*", log, re.M)
