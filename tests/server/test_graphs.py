"""Models whose graphs need more of TensorFlow than rows of arithmetic do."""

import os
from functools import cache

import numpy as np
import pytest
import tensorflow as tf

from ..models import saving
from .servers import AS_SAVED

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
    """Saves y = function(x) as a TF2 SavedModel."""
    module = tf.Module()
    module.f = tf.function(
        lambda x: {"y": function(x)}, input_signature=[tf.TensorSpec([None], tf.float32, "x")]
    )
    tf.saved_model.save(module, os.fspath(directory), signatures=module.f)


def doubled_thrice(x):
    """Returns x * 8, by a loop."""
    return tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * 2), [tf.constant(0), x])[1]


def by_old_control_flow(x):
    """Returns x * 8, by the Switch and Merge nodes of TF1."""
    v1.disable_control_flow_v2()
    try:
        return doubled_thrice(x)
    finally:
        v1.enable_control_flow_v2()


def by_reference_variable(x):
    """Returns x * 8, by the variables of TF1."""
    return x * v1.get_variable("eight", initializer=8.0, use_resource=False)


def by_table(x):
    """Returns x * 8, by a hash table that an init op fills."""
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
    """Saves y = x * 8 in a signature whose method name nobody knows."""
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
    """Of every model."""
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
    """The model's y for x."""

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


def test_regular_expressions_are_tensorflows_own(ask):
    assert ask("regex", ["12-ab", "none"]).tolist() == [b"ab:12", b"none"]
