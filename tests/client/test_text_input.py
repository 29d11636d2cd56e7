"""Requests to a model whose only input is text.

tests/zoo/text/ serves such models. A signature of serialized tf.Examples is declared in the same
way, so it is known by its name or its method, or by columns that were made from it.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf
from colcast.client import InputError, ModelSchema, SchemaError, Target
from colcast.client.columns._inputs import Rows
from colcast.client.columns._inputs_examples import Examples
from colcast.client.request._prepared import PreparedItems
from colcast.loadtest.send.formats import signature_for
from colcast.loadtest.send.generated import generated

from .conftest import message, signature, spec

TEXTS = ["a fine film", "Łódź", ""]
ROWS = [{"text": text} for text in TEXTS]
FORMS = {
    "rows": ROWS,
    "columns": {"text": TEXTS},
    "an array": {"text": np.array(TEXTS)},
    "pandas": pd.DataFrame(ROWS),
    "pyarrow": pa.Table.from_pylist(ROWS),
    "prepared": PreparedItems(ROWS),
}
TEXT = spec("text", "string", None)
SIGNATURES = (
    signature("serving_default", TEXT),
    signature("matrix", spec("text", "string", None, 1)),
    replace(signature("regress", TEXT), method="tensorflow/serving/regress"),
    signature("named", spec("examples", "string", None)),
    signature("exported", TEXT),
    signature("columnar_exported", TEXT),
)
SCHEMA = ModelSchema("reviews", 1, {each.name: each for each in SIGNATURES})


def sent(inputs: Any, target: Target = "auto", **options: Any) -> list[bytes]:
    """The strings of the request's only input."""
    (tensor,) = message(SCHEMA, inputs, target, **options).inputs.values()
    values: list[bytes] = tf.make_ndarray(tensor).ravel().tolist()
    return values


def features(inputs: Any, target: Target = "auto", **options: Any) -> list[set[str]]:
    """The names of the features in each of the request's tf.Examples."""
    examples = map(tf.train.Example.FromString, sent(inputs, target, **options))
    return [set(example.features.feature) for example in examples]


def encoded(*texts: str) -> list[bytes]:
    return [text.encode() for text in texts]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target", ["auto", "columnar", "stock", "repeated"])
def test_texts_are_sent_under_the_inputs_name(form: str, target: Target):
    assert sent(Rows(FORMS[form]), target) == encoded(*TEXTS)


def test_equal_texts_are_a_row_each():
    assert sent(Rows(ROWS[:1] * 3)) == encoded(*TEXTS[:1] * 3)
    assert sent(Rows([{}, {}], {"text": "x"})) == encoded("x", "x")


def test_other_features_need_the_target_example():
    with pytest.raises(InputError, match=r"feature 'text': missing.*; given but unused: 'title'"):
        sent(Rows([{"title": "x"}]))
    assert features(Rows([{"title": "x"}], {"age": 31}), "example") == [{"age", "title"}]


def test_examples_stay_examples():
    data = sent(Rows(ROWS), "example")
    assert features(Rows(ROWS), "example") == [{"text"}] * 3
    assert sent(Examples(data)) == data


@pytest.mark.parametrize("name", ["regress", "named", "exported"])
def test_a_signature_known_to_parse_examples_gets_them(name: str):
    assert features(Rows(ROWS), signature=name) == [{"text"}] * 3


def test_the_name_examples_is_known_even_where_a_row_has_it():
    assert features(Rows([{"examples": "x"}]), signature="named") == [{"examples"}]


def test_examples_are_no_matrix():
    rows = Rows([{"text": [text]} for text in TEXTS])
    assert sent(rows, signature="matrix") == encoded(*TEXTS)
    with pytest.raises(SchemaError, match="'matrix' does not take serialized"):
        sent(rows, "example", signature="matrix")


def test_the_schema_says_which():
    lines = repr(SCHEMA).splitlines()
    for name, says in (
        ("serving_default", "text: string"),
        ("named", "examples: serialized tf.Examples"),
    ):
        at = next(i for i, line in enumerate(lines) if line.startswith(name))
        assert lines[at + 1] == f"  {says}"


@pytest.mark.parametrize("name", [None, "serving_default"])
def test_the_loadtest_sends_texts(name: str | None):
    (data,) = generated(SCHEMA, [3], seed=1, signature="serving_default")
    called = signature_for(SCHEMA, "columnar", name)
    found = sent(Rows(data.items, data.user), "columnar", signature=called)
    assert found == encoded(*data.items["text"])
