"""Models whose graphs need more than TensorFlow's arithmetic, or ops that its wheel lacks."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as text
import ydf
import ydf_tf  # noqa: F401  the ops of the graphs
from colcast.server import ServerProcess, find_executable

from ..models import saving
from ..models.saving import save_version, serialized
from ..other_environment import ESTIMATOR
from .conftest import config_flag
from .servers import AS_SAVED, Stubs

v1 = tf.compat.v1


def save_graph(directory, build):
    """Saves a TF1 graph y = build(x) as a SavedModel."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], "x")
        y = build(x)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        v1.saved_model.simple_save(
            session,
            os.fspath(directory),
            {"x": x},
            {"y": y},
            legacy_init_op=v1.tables_initializer(),
        )


def save_function(directory, function):
    """Saves y = function(x) as a SavedModel of TF2."""
    module = tf.Module()
    module.f = tf.function(
        lambda x: {"y": function(x)}, input_signature=[tf.TensorSpec([None], tf.float32, "x")]
    )
    tf.saved_model.save(module, os.fspath(directory), signatures=module.f)


def doubled_thrice(x):
    """Returns 8 x by a loop."""
    return tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * 2), [tf.constant(0), x])[1]


def by_old_control_flow(x):
    """Returns 8 * x, computed with TF1's Switch and Merge nodes."""
    v1.disable_control_flow_v2()
    try:
        return doubled_thrice(x)
    finally:
        v1.enable_control_flow_v2()


def by_reference_variable(x):
    """Returns 8 x by a reference variable of TF1."""
    return x * v1.get_variable("eight", initializer=8.0, use_resource=False)


def by_table(x):
    """Returns 8 x by a hash table that an init op fills."""
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(["w"]), tf.constant([8.0])), 0.0
    )
    return x * table.lookup(tf.constant("w"))


EIGHT_TIMES = {
    "switch_and_merge": (save_graph, by_old_control_flow),
    "reference_variable": (save_graph, by_reference_variable),
    "hash_table": (save_graph, by_table),
    "while": (save_function, doubled_thrice),
    "cond": (save_function, lambda x: tf.cond(tf.size(x) > 1, lambda: x * 8, lambda: x)),
    "map_fn": (save_function, lambda x: tf.map_fn(lambda row: row * 8, x)),
}
FLOATS = {"reciprocal": tf.math.reciprocal, "third": lambda x: x / 3, "sum": lambda x: x + x}


def save_method_name(directory):
    """Saves y = 8 x in a signature that has an unknown method name."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], "x")
        signature = v1.saved_model.build_signature_def(
            {"x": v1.saved_model.build_tensor_info(x)},
            {"y": v1.saved_model.build_tensor_info(x * 8)},
            method_name="a/method/of/ones/own",
        )
        saving.save_graph(directory, session, {"serving_default": signature})


@pytest.fixture(scope="module")
def base_paths(tmp_path_factory):
    """The base path of each model, by name."""
    folder = tmp_path_factory.mktemp("graphs")
    for name, (save, function) in EIGHT_TIMES.items():
        save(folder / name / "1", function)
    for name, function in FLOATS.items():
        save_graph(folder / name / "1", function)
    save_method_name(folder / "method_name" / "1")
    module = tf.Module()
    module.f = tf.function(
        lambda x: {"y": tf.strings.regex_replace(x, r"(\pN+)-(\w+)", r"\2:\1")},
        input_signature=[tf.TensorSpec([None], tf.string, "x")],
    )
    tf.saved_model.save(module, os.fspath(folder / "regex" / "1"), signatures=module.f)
    return {path.name: path for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module", params=[(), AS_SAVED])
def ask(request, base_paths, serve):
    """A function that returns y for a model's name and x."""

    @cache
    def stubs(name):
        return serve(base_paths[name], *request.param)

    return lambda name, x: stubs(name).predict({"x": x})["y"]


@pytest.mark.parametrize("name", [*EIGHT_TIMES, "method_name"])
def test_every_graph_is_served(ask, name):
    np.testing.assert_array_equal(ask(name, np.float32([1, 2.5])), [8, 20])


@pytest.mark.parametrize("name", FLOATS)
def test_floats_have_the_bits_that_a_session_of_tensorflow_gives_them(base_paths, ask, name):
    x = np.float32([1e-40, -1e-40, 3e-39, -1.2e-38, 0.1, 1.0, 1e38, np.pi])
    with tf.Graph().as_default(), v1.Session() as session:
        saved = v1.saved_model.load(session, ["serve"], os.fspath(base_paths[name] / "1"))
        signature = saved.signature_def["serving_default"]
        fed = {signature.inputs["x"].name: x}
        expected = session.run(signature.outputs["y"].name, fed)
    got = ask(name, x)
    assert got.tobytes() == expected.tobytes(), (got, expected)


def test_method_names_matter_only_if_the_flag_says_so(base_paths, serve):
    strict = serve(base_paths["method_name"], "--enable_signature_method_name_check")
    with pytest.raises(grpc.RpcError) as refused:
        strict.predict({"x": [1.0]})
    assert refused.value.code() is grpc.StatusCode.INTERNAL  # TensorFlow Serving's code
    assert '"a/method/of/ones/own"' in refused.value.details()


def test_regular_expressions_are_tensorflows_own(ask):
    assert ask("regex", ["12-ab", "none"]).tolist() == [b"ab:12", b"none"]


VOCABULARY = ["[UNK]", "send", "the", "user", "##s", "once", "rank", "every"]
TEXTS = ["send the user once", "", "rank every users", "no  word of\tthese \u00fc"]
LIBRARY = Path(text.__file__).parent / "python" / "ops" / "_whitespace_tokenizer.so"


class Tokens(tf.Module):
    """A model that tokenizes texts with a TF Text op."""

    def __init__(self):
        super().__init__()
        self.tokenizer = text.FastWordpieceTokenizer(VOCABULARY, token_out_type=tf.int64)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def count(self, texts):
        """Each text's WordPiece ids, padded with -1 to the longest text, and their number."""
        ids = self.tokenizer.tokenize(text.case_fold_utf8(texts))
        return {"ids": ids.to_tensor(-1), "count": ids.row_lengths()}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """The module, and the base path of its only version."""
    base, module = tmp_path_factory.mktemp("tokens"), Tokens()
    save_version(base / "1", module, module.count)
    return module, base


@pytest.fixture(scope="module")
def stubs(tokens, tmp_path_factory):
    """Stubs of a server of two models that use TF Text's ops, loaded at the same time."""
    file = tmp_path_factory.mktemp("models") / "models.config"
    config = config_flag(file, {"ranker": tokens[1], "other": tokens[1]})
    # The same library may be given more than once.
    library = [f"--op_library={LIBRARY}"] * 2
    with ServerProcess(flags=[config, "--num_load_threads=2", *library]) as server:
        yield Stubs(server.target)


@pytest.mark.parametrize("name", ["ranker", "other"])
def test_ops_of_tf_text_are_found_where_it_is_installed(tokens, stubs, name):
    answer = stubs.predict({"text": TEXTS}, name=name)
    expected = tokens[0].count(tf.constant(TEXTS))
    assert answer["ids"].tolist() == expected["ids"].numpy().tolist()
    assert answer["count"].tolist() == expected["count"].numpy().tolist()


def refusal(base, library):
    """The error of a server that refuses to start because of a library."""
    flags = ["--host=127.0.0.1", f"--model_base_path={base}", f"--op_library={library}"]
    command = [find_executable(), *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert f"the op library {library} cannot be loaded" in done.stderr
    return done.stderr


def test_a_library_for_another_tensorflow_is_refused_with_its_package(tokens):
    forests = ESTIMATOR.package("tensorflow_decision_forests")
    if forests is None:
        pytest.skip("TensorFlow 2.15 and a library for it: make setup-estimator")
    said = refusal(tokens[1], forests / "tensorflow" / "ops" / "inference" / "inference.so")
    assert f"built for another TensorFlow than this server's {tf.__version__}: " in said
    assert ": pip install --no-deps ydf-tf==2." in said


# Decision forests of TF-DF and YDF.

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
    np.testing.assert_allclose(scores, expected, rtol=1e-6)
    model = tf.saved_model.load(str(trained / name / "1")).signatures["serving_default"]
    (here,) = model(**{column: tf.constant(values) for column, values in columns.items()}).values()
    np.testing.assert_array_equal(scores, here)


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
    numbers = {name: float(columns[name][row]) for name in ("age", "price")}
    texts = {name: columns[name][row] for name in ("country", "sections")}
    there = {name: value for name, value in numbers.items() if value == value}
    return serialized(there | {name: value for name, value in texts.items() if value})


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
def forest(exported: tuple[Any, Path], serve: Any) -> Stubs:
    return serve(exported[1])


def test_columns_of_a_forest_score_as_its_tf_examples(exported, forest: Stubs) -> None:
    trained, base_path = exported
    columns = draw(200, 11)
    examples = [example(columns, row) for row in range(200)]
    model = tf.saved_model.load(str(base_path / "1")).signatures["serving_default"]
    expected = model(inputs=tf.constant(examples))["output"]
    assert len(np.unique(expected)) > 20
    np.testing.assert_allclose(expected, trained.predict(columns), rtol=1e-6)
    np.testing.assert_array_equal(forest.predict({"inputs": examples})["output"], expected)
    scores = forest.predict(padded(columns), signature_name="columnar")["output"]
    np.testing.assert_array_equal(scores, expected)
    for user in range(4):
        columns = draw(100, 13)
        for name in USER:
            columns[name] = columns[name][[user] * 100]
        repeated = forest.predict(padded(columns), signature_name="columnar")["output"]
        for signature in ("columnar", "columnar_late"):
            once = forest.predict(padded(columns, slice(1)), signature_name=signature)["output"]
            np.testing.assert_array_equal(once, repeated)
    # The op of a forest does not turn TensorFlow's messages on.
    assert not re.findall(r"^(?:I\d{4} |WARNING: All log messages).*", forest.server.log(), re.M)
