"""One user and three candidates, written in each of the five ways; models that take only text."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import InputError, ModelSchema, SchemaError, Signature, Target
from colcast.client.columns._inputs import Rows
from colcast.client.columns._inputs_examples import Examples

from .conftest import ALL, ITEMS, USER, arrays, message, signature, spec


def expanded(request: Any, rows: int = 3) -> dict[str, list[Any]]:
    """Every input as the model sees it, after single rows are repeated."""
    return {
        name: (values if len(values) == rows else np.repeat(values, rows, axis=0)).tolist()
        for name, values in arrays(request).items()
    }


def test_every_target_says_the_same(schema: ModelSchema):
    said = [expanded(message(schema, Rows(ITEMS, USER), target)) for target in ALL]
    assert said[1:] == said[:-1]


def test_targets_differ_in_who_repeats(schema: ModelSchema):
    requests = {target: message(schema, Rows(ITEMS, USER), target) for target in ALL}
    assert requests["late"].model_spec.signature_name == "columnar_late"
    assert requests["columnar"].model_spec.signature_name == "columnar"
    assert len(arrays(requests["late"])["history"]) == 1
    assert len(arrays(requests["repeated"])["history"]) == 3
    age = requests["stock"].inputs["age"]
    assert (list(age.int64_val), age.tensor_shape.dim[0].size) == ([31], 3)
    city = requests["stock"].inputs["city"]
    assert (list(city.string_val), city.tensor_shape.dim[0].size) == (["Łódź".encode()], 3)


def test_auto_takes_the_late_signature_if_there_is_one(schema: ModelSchema):
    assert message(schema, Rows(ITEMS, USER)).model_spec.signature_name == "columnar_late"
    without = ModelSchema(
        "m", 1, {k: v for k, v in schema.signatures.items() if k != "columnar_late"}
    )
    assert message(without, Rows(ITEMS, USER)).model_spec.signature_name == "columnar"
    only_examples = ModelSchema("m", 1, {"serving_default": schema.signature("serving_default")})
    assert message(only_examples, Rows(ITEMS, USER)).model_spec.signature_name == "serving_default"


def test_mixed_rows_send_what_is_equal_once(schema: ModelSchema):
    rows = [{**USER, **item} for item in ITEMS]
    for target in ALL:
        mixed = message(schema, Rows(rows), target)
        assert mixed == message(schema, Rows(ITEMS, USER), target)
    full = arrays(message(schema, Rows(rows), "columnar", dedupe="off"))
    assert len(full["age"]) == 3
    assert message(schema, Rows(rows), dedupe="off") == message(schema, Rows(ITEMS, USER))


@pytest.mark.parametrize(
    ("feature", "values", "shown"),
    [
        ("city", ["Oslo", "Oslo", "Rome"], "b'Oslo' on row 0 and b'Rome' here"),
        ("age", [31, 31, 32], "31 on row 0 and 32 here"),
        ("history", [[1], [1], [1, 2]], "[1, 0] on row 0 and [1, 2] here"),
    ],
)
def test_a_user_feature_that_differs_by_row_is_named_with_its_values(
    schema: ModelSchema, feature: str, values: list[Any], shown: str
):
    user = {name: value for name, value in USER.items() if name != feature}
    rows = [{**item, feature: value} for item, value in zip(ITEMS, values, strict=True)]
    with pytest.raises(InputError, match=re.escape(shown)) as raised:
        message(schema, Rows(rows, user), "late")
    assert (raised.value.feature, raised.value.row) == (feature, 2)


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("user", [None, {**USER, **ITEMS[0]}])
def test_rows_that_are_all_equal_or_empty_still_say_how_many(
    schema: ModelSchema, user: Any, target: Target
):
    rows = [{} if user else {**USER, **ITEMS[0]}] * 4
    found = arrays(message(schema, Rows(rows, user), target))
    assert max(len(values) for values in found.values()) == 4


def test_auto_leaves_the_late_signature_when_the_user_varies(schema: ModelSchema):
    rows = [{**USER, "age": 30 + i, **item} for i, item in enumerate(ITEMS)]
    request = message(schema, Rows(rows))
    assert request.model_spec.signature_name == "columnar"
    assert arrays(request)["age"].tolist() == [30, 31, 32]
    with pytest.raises(InputError, match=r"feature 'age', row 1: .* 30 on row 0 and 31 here"):
        message(schema, Rows(rows), "late")


def examples(request: Any) -> Sequence[Any]:
    return [tf.train.Example.FromString(data) for data in arrays(request)["examples"].tolist()]


@pytest.mark.parametrize("target", ALL)
def test_examples_become_the_same_columns(schema: ModelSchema, target: Target):
    rows = [{**USER, **item} for item in ITEMS]
    protos = examples(message(schema, Rows(rows), "example"))
    inputs = Examples([proto.SerializeToString() for proto in protos])
    assert message(schema, inputs, target) == message(schema, Rows(ITEMS, USER), target)


def test_examples_without_columnar_signature_need_no_schema():
    serving = signature("serving_default", spec("examples", "string", None))
    schema = ModelSchema("m", 1, {"serving_default": serving})
    request = message(schema, Rows([{"a": 1, "b": [0.5, 2]}, {"a": None, "b": []}], {"u": "x"}))
    first, second = (example.features.feature for example in examples(request))
    assert first["a"].int64_list.value == [1]
    assert first["b"].float_list.value == [0.5, 2.0]
    assert second["u"].bytes_list.value == [b"x"]


def with_signatures(schema: ModelSchema, *more: Signature) -> ModelSchema:
    return ModelSchema("m", 1, {**schema.signatures, **{each.name: each for each in more}})


def brief(name: str = "brief", output: str = "brief") -> Signature:
    """A signature that takes tf.Examples and has one output."""
    outputs = {output: spec(output, "float32", None)}
    return replace(signature(name, spec("examples", "string", None)), outputs=outputs)


def test_a_signature_of_examples_has_the_features_of_its_own_columns(schema: ModelSchema):
    twin = replace(signature("columnar_brief", spec("x", "float32", None)), outputs=brief().outputs)
    more = with_signatures(schema, brief(), twin)
    request = message(more, Rows([{"x": 1}], {}), "example", signature="brief")
    assert examples(request)[0].features.feature["x"].float_list.value == [1.0]
    with pytest.raises(InputError, match=r"^feature 'x': missing, and the model has no default"):
        message(more, Rows(ITEMS, USER), "example", signature="brief")
    with pytest.raises(InputError, match=r"^feature 'movie': missing"):
        message(more, Rows([{"vector": [1, 2, 3]}], USER), "example", signature="serving_default")


@pytest.mark.parametrize("output", ["brief", "scores"])
def test_a_signature_of_examples_without_known_columns_needs_none(schema: ModelSchema, output: str):
    """Columns of another signature or of other outputs are not its own."""
    more = with_signatures(schema, brief("serving_default"))
    request = message(more, Rows([{"movie": 7}]), "example")
    assert list(examples(request)[0].features.feature) == ["movie"]
    more = with_signatures(schema, brief(output=output))
    columns = {
        "year": [1990, None],
        "vector": np.ones((2, 3)),
        "movie": [7.0, float("nan")],
        "genres": np.array([["War", ""], ["War", "Noir"]]),
        "genres/length": [1, 2],
        "square": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
    }
    request = message(more, Rows(columns, {"city": "x"}), "example", signature="brief")
    first, second = (example.features.feature for example in examples(request))
    assert first["year"].float_list.value == [1990.0]
    assert first["vector"].float_list.value == [1.0, 1.0, 1.0]
    assert first["movie"].int64_list.value == [7]
    assert first["genres"].bytes_list.value == [b"War"]
    assert first["square"].int64_list.value == [1, 2, 3, 4]
    assert sorted(second) == ["city", "genres", "square", "vector"]


def test_a_dtype_on_which_columns_differ_is_read_from_the_data(schema: ModelSchema):
    more = with_signatures(
        schema, brief(), signature("other", spec("movie", "string", None), spec("z", "int64", None))
    )
    request = message(more, Rows([{"movie": 0.5, "year": 1}]), "example", signature="brief")
    first = examples(request)[0].features.feature
    assert (first["movie"].float_list.value, first["year"].float_list.value) == ([0.5], [1.0])


def test_the_model_must_have_the_signature(schema: ModelSchema):
    plain = ModelSchema("m", 1, {"serving_default": schema.signature("serving_default")})
    with pytest.raises(SchemaError, match=r"no signature 'columnar_late'; it has serving_default"):
        message(plain, Rows(ITEMS, USER), "late")
    with pytest.raises(InputError, match=r"target must be one of auto, late.*got 'fast'"):
        message(schema, Rows(ITEMS, USER), "fast")  # type: ignore[arg-type]


# A signature of serialized tf.Examples is declared as one of text is, so it is known by its name or
# its method, or by columns that were made from it. tests/zoo/text/ serves models of text.
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


def test_a_signature_known_to_parse_examples_gets_them():
    data = sent(Rows(ROWS), "example")
    assert sent(Examples(data)) == data
    assert features(Rows(ROWS), "example") == [{"text"}] * 3
    for name in ("regress", "named", "exported"):
        assert features(Rows(ROWS), signature=name) == [{"text"}] * 3
    assert features(Rows([{"examples": "x"}]), signature="named") == [{"examples"}]


def test_examples_are_no_matrix():
    rows = Rows([{"text": [text]} for text in TEXTS])
    assert sent(rows, signature="matrix") == encoded(*TEXTS)
    with pytest.raises(SchemaError, match="'matrix' does not take serialized"):
        sent(rows, "example", signature="matrix")
