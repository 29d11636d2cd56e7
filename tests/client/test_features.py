"""Features of every kind and dtype, as a signature may declare them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from colcast.client import InputError, Kind, ModelSchema, Policies, Signature, Target, TensorSpec
from colcast.client.columns._inputs import Rows, table_of_items
from colcast.client.columns._inputs_examples import Examples

from .conftest import arrays, message, signature, spec

ITEMS = [{"item": 1}, {"item": 2}]
ITEM = spec("item", "int64", None)


def model(*specs: TensorSpec, **defaults: Any) -> ModelSchema:
    """A model that has these inputs and `item`."""
    examples = signature("serving_default", spec("examples", "string", None))
    columnar = signature("columnar", ITEM, *specs, **defaults)
    return ModelSchema("m", 1, {"columnar": columnar, "serving_default": examples})


def sent(
    schema: ModelSchema, inputs: Any, target: Any = "columnar", **options: Any
) -> dict[str, Any]:
    """Input name -> nested list, as TensorFlow's runtime reads the request."""
    found = arrays(message(schema, inputs, target, **options))
    return {name: values.tolist() for name, values in found.items()}


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("float32", 1, 1.0),
        ("float64", 0.1, 0.1),
        ("float16", 0.5, 0.5),
        ("bfloat16", 1.00390625, 1.0),
        ("int8", -128, -128),
        ("int16", np.int64(3), 3),
        ("int32", 7.0, 7),
        ("int64", True, 1),
        ("uint8", 255, 255),
        ("uint16", 1, 1),
        ("uint32", 2**32 - 1, 2**32 - 1),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("bool", np.True_, True),
        ("string", "ü", "ü".encode()),
    ],
)
@pytest.mark.parametrize("target", ["columnar", "stock", "repeated"])
def test_a_value_of_every_dtype(dtype: str, value: Any, expected: Any, target: Any):
    schema = model(spec("x", dtype, None))
    found = sent(schema, Rows(ITEMS, {"x": value}), target)["x"]
    assert found == ([expected] if target == "columnar" else [expected] * 2)


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("int8", 128, r"128 is out of the range of int8 \[-128, 127\]"),
        ("uint8", -1, r"-1 is out of the range of uint8 \[0, 255\]"),
        ("bool", 1, r"expected bool, got 1 \(int\)"),
        ("bool", "true", r"expected bool, got 'true' \(str\)"),
        ("float16", 70000.0, r"70000.0 \(float\) is too large for float16"),
        ("float16", np.uint16(65535), r"65535 \(int\) is too large for float16"),
        ("bfloat16", 1e39, r"1e\+39 \(float\) is too large for bfloat16"),
        ("bfloat16", 3.4e38, r"3.4e\+38 \(float\) is too large for bfloat16"),
        ("bfloat16", "x", r"expected bfloat16, got 'x' \(str\)"),
    ],
)
def test_a_value_that_fits_no_dtype(dtype: str, value: Any, message: str):
    with pytest.raises(InputError, match=f"^user feature 'x': {message}$"):
        sent(model(spec("x", dtype, None)), Rows(ITEMS, {"x": value}))


LIST = (spec("x", "int64", None, None), spec("x/length", "int64", None))
TEXTS = (spec("x", "string", None, None), spec("x/length", "int64", None))
FLAGS = (spec("x", "bool", None, None), spec("x/length", "int64", None))
STEPS = spec("x", "float32", None, None, 2)
BIG = 2**53 + 1  # no float64 holds it
NONE, NO_FLOATS = np.empty((2, 0), np.int64), np.array([])


def by_row(*values: Any) -> Rows:
    return Rows([{"item": i, "x": value} for i, value in enumerate(values)])


def by_column(values: Any, **more: Any) -> Rows:
    return Rows({"item": [1, 2], "x": values, **more})


# The signature's inputs, their defaults, the given rows, and the columns that the client sends to
# servers that repeat rows and to servers that do not.
CASES: list[tuple[tuple[TensorSpec, ...], Any, Rows, Any]] = [
    # Integers stay exact.
    ((spec("x", "int64", None),), {}, by_row(BIG, 1.0), {"x": [BIG, 1]}),
    (LIST, {}, by_column([np.array([BIG]), NO_FLOATS]), {"x": [[BIG], [0]]}),
    (LIST, {}, by_column([np.array([BIG]), np.array([1.0])]), {"x": [[BIG], [1]]}),
    (LIST, {}, by_column([np.array([BIG]), np.array([1], np.uint64)]), {"x": [[BIG], [1]]}),
    ((spec("x", "int64", None, 1),), {}, by_column([np.array([BIG]), np.array([1.0])]),
     {"x": [[BIG], [1]]}),
    (FLAGS, {}, by_column([np.array([True]), NO_FLOATS]), {"x": [[True], [False]]}),
    (TEXTS, {}, by_column([np.array(["a"]), NO_FLOATS]), {"x": [[b"a"], [b""]]}),
    # Rows with a shape.
    ((spec("x", "int64", None, 1),), {}, Rows(ITEMS, {"x": 5}), {"x": [[5]]}),
    ((spec("x", "int64", None, 1),), {}, Rows(ITEMS, {"x": [5]}), {"x": [[5]]}),
    ((spec("x", "int64", None, 1),), {}, by_column(np.array([5, 6])), {"x": [[5], [6]]}),
    ((spec("x", "string", None, 2),), {}, by_row(["a", b"b"], ("c", "d")),
     {"x": [[b"a", b"b"], [b"c", b"d"]]}),
    ((spec("x", "float32", None, 2),), {"x": [[8.0, 9.0]]}, by_row([1, 2], None),
     {"x": [[1.0, 2.0], [8.0, 9.0]]}),
    ((spec("x", "bfloat16", None, 2),), {"x": np.float32([1.5, -2])}, by_row([0.5, 1.0], None),
     {"x": [[0.5, 1.0], [1.5, -2.0]]}),
    ((spec("x", "float32", None, 2),), {"x": [[8.0, 9.0]]}, Rows(ITEMS), {"x": [[8.0, 9.0]]}),
    ((spec("x", "float32", None, 2, 2),), {}, by_row([[1, 2], [3, 4]], [[5, 6], [7, 8]]),
     {"x": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]}),
    ((spec("x", "float32", None, 2, 2),), {}, by_column(np.arange(8).reshape(2, 2, 2)),
     {"x": [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]}),
    # Lists.
    (LIST, {}, by_column([[], []]), {"x": [[0]], "x/length": [0]}),
    (LIST, {}, by_column(NONE), {"x": [[0]], "x/length": [0]}),
    (LIST, {}, by_column([None, None]), {"x": [[0]], "x/length": [0]}),
    (LIST, {}, by_column([NO_FLOATS] * 2), {"x": [[0]], "x/length": [0]}),
    (TEXTS, {}, Rows(ITEMS), {"x": [[b""]], "x/length": [0]}),
    (LIST, {}, Rows(ITEMS, {"x": np.array([4, 4])}), {"x": [[4, 4]], "x/length": [2]}),
    (LIST, {"x": NONE[:1], "x/length": [0]}, Rows(ITEMS), {"x": [[0]], "x/length": [0]}),
    (LIST, {"x": [[5, 6]], "x/length": [1]}, Rows(ITEMS), {"x": [[5]], "x/length": [1]}),
    (LIST, {"x": [[5, 6]], "x/length": [2]}, Rows(ITEMS), {"x": [[5, 6]], "x/length": [2]}),
    # Sequences, whose padding the model sees.
    ((STEPS,), {}, by_row([[1, 2], [3, 4]], [[5, 6]]),
     {"x": [[[1, 2], [3, 4]], [[5, 6], [0, 0]]], "x/length": None}),
    ((STEPS,), {"x": np.zeros((1, 0, 2), np.float32)}, Rows(ITEMS), {"x": [[]]}),
    ((spec("x", "int64", None, None),), {"x": NONE[:1]}, by_column([[], []]), {"x": [[]]}),
    ((spec("x", "float32", None, None),), {"x": [[7.0]]}, by_row([1], [2, 3]),
     {"x": [[1.0, 7.0], [2.0, 3.0]]}),
    # Gaps between equal values.
    ((spec("x", "int64", None),), {"x": [5]}, by_row(1, None, 1), {"x": [1, 5, 1]}),
    ((spec("x", "int64", None),), {"x": [5]}, by_row(1, pd.NA, 1), {"x": [1, 5, 1]}),
    # A length without a list is a feature like any other.
    ((spec("x/length", "int64", None),), {}, Rows(ITEMS, {"x/length": 90}), {"x/length": [90]}),
]  # fmt: skip


@pytest.mark.parametrize("target", ["columnar", "stock", "repeated"])
@pytest.mark.parametrize(("specs", "defaults", "given", "expected"), CASES, ids=range(len(CASES)))
def test_what_is_sent(specs: Any, defaults: Any, given: Rows, expected: Any, target: Any):
    found = sent(model(*specs, **defaults), given, target)
    absent = not given.user and "x" not in table_of_items(given.items, None).columns
    for name, values in expected.items():
        if target == "columnar":
            filled = absent and set(expected) <= defaults.keys()
            assert found.get(name) == (None if filled else values)  # the server fills it in
        else:
            assert found.get(name) in (values, values and values * 2)


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([2**53 + 1, None, 1])[::2],  # pandas makes it float64
        [float(2**53), 1],
        np.array([2**24 + 1, 1], np.float32),
    ],
)
def test_floats_that_may_be_rounded_integers_are_refused(values: Any):
    schema = model(spec("x", "int64", None))
    with pytest.raises(InputError, match=r"^feature 'x', row 0: expected int64, got .* rounded"):
        sent(schema, Rows({"item": [1, 2], "x": values}))


def _examples(schema: ModelSchema, rows: Any) -> list[bytes]:
    found = sent(schema, Rows(rows), "example")["examples"]
    assert all(tf.train.Example.FromString(data) for data in found)
    return list(found)


LISTS: list[tuple[tuple[TensorSpec, ...], Any, Any]] = [
    ((spec("x", "string", None, None), spec("x/length", "int64", None)), ["a"], None),
    ((spec("x", "float32", None, None), spec("x/length", "int64", None)), [1.0], None),
    ((spec("x", "int64", None, None),), [1, 2], None),
    ((spec("x", "float32", None, None, 2),), [[1.0, 2.0]], None),
    ((spec("x", "string", None, 2),), ["a", "b"], [[b"c", b"d"]]),
    ((spec("x", "float32", None, 2),), [1.0, 2.0], [[8.0, 9.0]]),
    ((spec("x", "int64", None, 2, 2),), [[1, 2], [3, 4]], [[[5, 6], [7, 8]]]),
]
NAN = float("nan")


@pytest.mark.parametrize(("specs", "value", "default"), LISTS, ids=range(len(LISTS)))
def test_nan_for_a_missing_list_counts_as_missing(specs: Any, value: Any, default: Any):
    schema = model(*specs) if default is None else model(*specs, x=default)
    rows = [{"item": 1, "x": value}, {"item": 2}]
    frame = pd.DataFrame(rows)
    for target in ("columnar", "stock", "repeated", "example"):
        expected = sent(schema, Rows(rows), target)
        for items in (
            [rows[0], {"item": 2, "x": np.float32("nan")}],
            {"item": [1, 2], "x": [value, NAN]},
            frame,
            frame.to_dict("records"),
        ):
            assert sent(schema, Rows(items), target) == expected
    none = sent(schema, Rows(ITEMS, {"x": None}))
    every = {"item": [1, 2], "x": [NAN] * 2}
    for given in (Rows(ITEMS, {"x": NAN}), Rows(every), Rows(pd.DataFrame(every))):
        assert sent(schema, given) == none
    for missing in (NAN, None):
        with pytest.raises(InputError, match=r"^user feature 'x': expected .*; none='error'$"):
            sent(schema, Rows(ITEMS, {"x": missing}), policies=Policies(none="error"))


def test_nan_where_one_float_belongs_is_a_value():
    for shape in ((None,), (None, 1)):
        schema = model(spec("x", "float32", *shape), x=np.full(shape[1:] or 1, 5.0))
        for items in (pd.DataFrame({"item": [1, 2], "x": [NAN, 1.0]}), [{"item": 1, "x": NAN}]):
            found = sent(schema, Rows(items), policies=Policies(nan="send"))
            assert np.isnan(np.ravel(found["x"])[0])


def test_nan_beside_lists_or_text_is_nothing_where_no_columns_are_known():
    schema = ModelSchema("m", 1, {"s": signature("s", spec("examples", "string", None))})
    rows = [{"a": [0.5], "b": "x", "c": 0.5}, {"a": NAN, "b": NAN, "c": NAN}]
    second = tf.train.Example.FromString(
        sent(schema, Rows(rows), "example", policies=Policies(nan="send"))["examples"][1]
    )
    assert list(second.features.feature) == ["c"]
    assert np.isnan(second.features.feature["c"].float_list.value[0])


def test_sequences_of_examples_and_of_another_shape():
    schema = model(STEPS)
    assert schema.signature("columnar").features["x"].kind is Kind.SEQUENCE
    row = {"item": 1, "x": [[1, 2], [3, 4]]}
    assert sent(schema, Examples(_examples(schema, [row, row])))["x"] == [[[1, 2], [3, 4]]]
    with pytest.raises(InputError, match=r"'x', row 1: expected float32 of shape \[any, 2\], got"):
        sent(schema, Rows([row, {"item": 2, "x": [[1, 2, 3]]}]))
    with pytest.raises(InputError, match="feature 'x': missing"):
        sent(schema, Rows(ITEMS))


def test_inputs_that_do_not_come_by_rows_go_as_they_are():
    schema = model(spec("k", "int32"), spec("w", "float32", 3), spec("m", "float32", 2, None))
    assert schema.signature("columnar").features["k"].kind is Kind.WHOLE
    user = {"k": 5, "w": [1, 2, 3], "m": np.ones((2, 4))}
    for target in ("columnar", "stock", "repeated"):
        found = sent(schema, Rows(ITEMS, user), target)
        assert (found["k"], found["w"], found["m"]) == (5, [1, 2, 3], [[1.0] * 4] * 2)
    with pytest.raises(InputError, match="feature 'k': has no rows: pass it in user"):
        sent(schema, Rows([{**user, **item} for item in ITEMS]))
    with pytest.raises(InputError, match=r"'w': expected float32 of shape \[3\], got shape \[2\]"):
        sent(schema, Rows(ITEMS, {**user, "w": [1, 2]}))


@pytest.mark.parametrize("target", ["auto", "columnar", "stock", "repeated"])
def test_an_input_of_any_rank_takes_the_shape_it_is_given(target: Target):
    schema = model(TensorSpec("x", ITEM.dtype, None))
    for x in (1, [1], [1, 2, 3], [[1, 2]]):
        assert sent(schema, Rows(ITEMS, {"x": x}), target)["x"] == x
    with pytest.raises(InputError, match="'x': lists of unequal length"):
        sent(schema, Rows(ITEMS, {"x": [[1], [1, 2]]}))
    by_rows = [{**item, "x": 7} for item in ITEMS]
    assert sent(schema, Rows(by_rows), target)["x"] == [7] * len(ITEMS)


def test_the_only_input_has_rows_whatever_its_rank():
    alone = Signature("serving_default", {"x": TensorSpec("x", ITEM.dtype, None)}, {}, {})
    schema = ModelSchema("m", 1, {"serving_default": alone})
    rows = [{"x": [1, 2]}, {"x": [3, 4]}]
    for target in ("columnar", "auto"):  # a model's own columns need no exporter
        assert sent(schema, Rows(rows), target) == {"x": [[1, 2], [3, 4]]}
    with pytest.raises(InputError, match="nothing to rank"):
        sent(schema, Rows([], {"x": [1, 2]}))
