"""Requests to a model whose only input is text.

tests/zoo/text/ serves such models. A signature of serialized tf.Examples is declared in the same
way, so it is known by its name or its method, or by columns that were made from it.
"""

from dataclasses import replace
from typing import Any

import pytest
import tensorflow as tf
from colcast.client import InputError, ModelSchema, SchemaError, Target
from colcast.client.columns._inputs import Rows
from colcast.client.columns._inputs_examples import Examples

from .conftest import message, signature, spec

TEXTS = ["a fine film", "Łódź", ""]
ROWS = [{"text": text} for text in TEXTS]
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


@pytest.mark.parametrize("target", ["auto", "columnar", "stock", "repeated"])
def test_texts_are_sent_under_the_inputs_name(target: Target):
    assert sent(Rows(ROWS), target) == encoded(*TEXTS)
    assert repr(SCHEMA).endswith("\nserving_default -> scores float32\n  text: string")


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
