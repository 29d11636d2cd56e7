"""Candidates by key: what the client sends, what the server adds, and the answer."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from colcast.client import InputError, ModelSchema, Policies
from colcast.client.columns._inputs import Rows
from colcast.client.request._item_keys import by_key
from colcast.client.request._request import build_request
from tensorflow_serving.apis import predict_pb2

from .conftest import (
    ITEMS,
    OTHER,
    USER,
    arrays,
    client_of,
    message,
    request_options,
    signature,
    spec,
)

USER_INPUTS = {"age", "city", "history", "history/length"}


def three_scores(request: bytes, _: Any) -> bytes:
    """A Predict handler that returns the scores 0.1, 0.9, 0.5, or the first of them."""
    found = arrays(predict_pb2.PredictRequest.FromString(request))
    rows = max(map(len, found.values()))
    response = predict_pb2.PredictResponse()
    response.model_spec.version.value = 3
    score = np.array([0.1, 0.9, 0.5], np.float32)[:rows]
    response.outputs["scores"].CopyFrom(tf.make_tensor_proto(score))
    return response.SerializeToString()


def sent(
    schema: ModelSchema, keys: Any, items: Any = (), target: Any = "auto", **settings: Any
) -> dict[str, Any]:
    """The inputs of the request that ranks these items for USER."""
    by = by_key(items, keys, request_options(**settings).settings)
    return arrays(message(schema, Rows(by, USER), target, **settings))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ((70, 90, 70), {"item_id": [70, 90, 70]}),
        (np.array([70, 90, 70], np.int32), {"item_id": [70, 90, 70]}),
        (pd.Series([70, 90, 70]), {"item_id": [70, 90, 70]}),
        (["a", "ż"], {"item_id": [b"a", "ż".encode()]}),
        ({"sku": [7]}, {"sku": [7]}),
        ({"item_id": [7, 9], "shop_id": ["a", "a"]}, {"item_id": [7, 9], "shop_id": [b"a", b"a"]}),
        ([7, 7, 7], {"item_id": [7, 7, 7]}),  # equal keys stay a column of all rows
        ({"movie": [7, 7]}, {"movie": [7, 7]}),
    ],
)
@pytest.mark.parametrize("target", ["auto", "late", "columnar", "repeated"])
def test_keys_in_any_form_and_the_user_are_sent_and_nothing_else(
    schema: ModelSchema, target: str, keys: Any, expected: Any
):
    found = sent(schema, keys, target=target)
    assert found.keys() == USER_INPUTS | expected.keys()
    assert {name: found[name].tolist() for name in expected} == expected
    assert all(found[name].dtype in (np.int64, object) for name in expected)


def test_the_client_may_name_the_key(schema: ModelSchema):
    assert sent(schema, [7], item_key="movie_id").keys() == USER_INPUTS | {"movie_id"}


def test_a_key_that_the_model_reads_is_sent_as_it_declares_it(schema: ModelSchema):
    late = signature("columnar_late", spec("age", "int64", 1), spec("movie", "int32", None, 1))
    other = ModelSchema("movies", 3, {"columnar_late": late})
    keys = by_key((), {"movie": [7, 9]}, request_options().settings)
    inputs = Rows(keys, {"age": 3})
    found = arrays(message(other, inputs))["movie"]
    assert (found.dtype, found.tolist()) == (np.int32, [[7], [9]])


@pytest.mark.parametrize(
    "items",
    [[{"genres": ["War"]}, {"genres": []}], {"genres": [["War"], []]}],
    ids=["rows", "dict"],
)
def test_features_beside_keys_are_sent_and_absent_ones_have_no_default(
    schema: ModelSchema, items: Any
):
    found = sent(schema, [70, 90], items)
    assert found.keys() == USER_INPUTS | {"item_id", "genres", "genres/length"}
    assert found["genres/length"].tolist() == [1, 0]


def test_the_keys_may_also_stand_in_the_rows(schema: ModelSchema):
    rows = [{"item_id": 70, "genres": ["War"]}, {"item_id": 90, "genres": []}]
    strict = Policies(unused="error")
    assert sent(schema, [70, 90], rows, policies=strict)["item_id"].tolist() == [70, 90]
    with pytest.raises(InputError, match="feature 'sku': the signature has no such feature"):
        sent(schema, [70], [{"sku": 1}], policies=strict)


def test_a_users_feature_is_still_missed(schema: ModelSchema):
    options = request_options("movies", "late")
    with pytest.raises(InputError, match="feature 'age': missing, and the model has no default"):
        build_request(schema, Rows(by_key((), [7], options.settings), {"city": "x"}), options)


@pytest.mark.parametrize(
    ("keys", "items", "said"),
    [
        ([], (), "item_keys has no rows"),
        ({}, (), "item_keys is empty"),
        ([1.5], (), "feature 'item_id', row 0: expected int64, got 1.5"),
        ([7, "a"], (), "feature 'item_id', row 1: expected int64, got 'a'"),
        ([7, None], (), "feature 'item_id', row 1: expected int64, got None"),
        ("abc", (), "feature 'item_id': expected a list or an array"),
        ([7], ITEMS[:2], "items has 2 rows, item_keys has 1"),
        ([70, 90], {"year": [1990.0]}, "items has 1 rows, item_keys has 2"),
        ({"age": [7]}, (), "user feature 'age'|feature 'age': cannot be a key of items"),
        ({"genres": [7]}, (), "feature 'genres': cannot be a key of items"),
        ({"a": [1], "b": [1, 2]}, (), "feature 'b': 2 rows, but 'a' has 1"),
    ],
)
def test_an_invalid_key_is_named(schema: ModelSchema, keys: Any, items: Any, said: str):
    with pytest.raises(InputError, match=said):
        sent(schema, keys, items)


def test_tf_examples_have_no_keys(schema: ModelSchema):
    with pytest.raises(InputError, match="item_keys need a signature that takes columns"):
        sent(schema, [7], target="example")


def test_the_ranking_keeps_the_keys(serves: Any):
    server = serves(predict=three_scores)
    with client_of(server) as client:
        ranking = client.rank(USER, item_keys={"sku": ["a", "b", "c"]})
    assert ranking.keys == {"sku": ["a", "b", "c"]}
    assert ranking.top_keys(2) == ["b", "c"]
    assert ranking.to_pandas()["sku"].tolist() == ["b", "c", "a"]


def test_users_share_a_request_by_key(parts: ModelSchema, serves: Any):
    server = serves(parts, three_scores)
    with client_of(server) as client:
        pairs = [(USER, (), [70, 90]), (OTHER, (), [70])]
        one, other = client.rank_many(pairs)
    (found,) = map(arrays, server.predicts)
    assert found.keys() == USER_INPUTS | {"item_id", "row_to_user"}
    assert found["item_id"].tolist() == [70, 90, 70]
    assert found["row_to_user"].tolist() == [0, 0, 1]
    assert (one.keys, other.keys) == ({"item_id": [70, 90]}, {"item_id": [70]})
    assert one.top_keys(1) == [90]


def test_users_with_other_overrides_have_requests_apart(parts: ModelSchema, serves: Any):
    server = serves(parts, three_scores)
    with client_of(server) as client:
        client.rank_many([(USER, [{"year": 1.0}], [70]), (OTHER, (), [70])])
    assert sorted("year" in each for each in map(arrays, server.predicts)) == [False, True]
