"""Several users in one request, candidates prepared once, a prefetched user."""

import itertools
from typing import Any

import grpc
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from colcast.client import AsyncRankingClient, InputError, ModelSchema, Target
from colcast.client.columns._inputs import Rows
from colcast.client.request._many_users import grouped
from colcast.client.request._prepared import PreparedItems
from colcast.client.request._request import build_request
from tensorflow_serving.apis import predict_pb2

from .conftest import (
    ALL,
    CAN,
    COLUMNS,
    ITEMS,
    OTHER,
    USER,
    arrays,
    client_of,
    message,
    request_options,
    signature,
    spec,
    stock,
    without_late,
)

PAIRS = [(USER, ITEMS), (OTHER, ITEMS[:1]), (USER, {n: v[1:] for n, v in COLUMNS.items()})]


# Prepared candidates.


@pytest.mark.parametrize("items", [ITEMS, COLUMNS], ids=["rows", "columns"])
def test_prepared_items_serve_every_target_and_user(schema: ModelSchema, items: Any):
    prepared = PreparedItems(items)
    for target in (*ALL, "auto", "example", *ALL):
        for user in (USER, OTHER):
            plain = message(schema, Rows(items, user), target)
            assert message(schema, Rows(prepared, user), target) == plain


def test_prepared_rows_with_the_user_in_them(schema: ModelSchema):
    mixed = [{**USER, **item} for item in ITEMS]
    varying = [{**row, "age": 30 + i} for i, row in enumerate(mixed)]
    cases = itertools.product((mixed, varying, [mixed[0]] * 4), ("auto", "columnar"))
    for rows, target in cases:
        options = request_options("movies", target)
        found = build_request(schema, Rows(PreparedItems(rows)), options)
        plain = build_request(schema, Rows(rows), options)
        assert found.signature == plain.signature
        parse = predict_pb2.PredictRequest.FromString
        assert parse(found.message) == parse(plain.message)


def test_mistakes_in_prepared_items_are_found_when_they_are_prepared(serves: Any):
    server = serves()
    with client_of(server) as client:
        with pytest.raises(InputError, match="feature 'movie', row 1: expected int64, got 'nine'"):
            client.prepare([{**ITEMS[0]}, {**ITEMS[1], "movie": "nine"}])
        prepared = client.prepare(ITEMS)
        with pytest.raises(InputError, match="feature 'age': missing"):
            client.rank({}, prepared)
        with pytest.raises(InputError, match="feature 'movie': given in user and in items"):
            client.rank({**USER, "movie": 1}, prepared)


# Several users in one request.


def knows_users(request: bytes, context: grpc.ServicerContext) -> bytes:
    """The Predict handler of a server that supports `row_to_user`."""
    found = arrays(predict_pb2.PredictRequest.FromString(request))
    rows = found.get("row_to_user", np.zeros(len(found["movie"]), np.int64))
    if not len(found["age"]) == rows.max(initial=0) + 1 == len(found["history"]):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "users")
    response = predict_pb2.PredictResponse()
    values = found["movie"] * 100.0 + found["age"][rows] + found["history"].sum(1)[rows]
    response.outputs["scores"].CopyFrom(tf.make_tensor_proto(values.astype(np.float32)))
    response.outputs["model"].CopyFrom(tf.make_tensor_proto([1.0, 2.0]))
    return response.SerializeToString()


@pytest.mark.parametrize("joined", [True, False])
def test_a_ranking_per_user(serves: Any, parts: ModelSchema, joined: bool):
    server = serves(parts if joined else stock(parts), knows_users)
    with client_of(server, score_output="scores") as client:
        found = client.rank_many(PAIRS)
        assert server.count("Predict") == (1 if joined else 3)
        alone = [client.rank(user, items) for user, items in PAIRS]
        assert [len(ranking.scores) for ranking in found] == [3, 1, 2]
        for one, other in zip(found, alone, strict=True):
            np.testing.assert_array_equal(one.scores, other.scores)
            np.testing.assert_array_equal(one.outputs["model"], [1.0, 2.0])


@pytest.mark.parametrize("target", ["late", "columnar"])
def test_users_columns_have_a_row_per_user(serves: Any, parts: ModelSchema, target: Target):
    server = serves(parts, knows_users)
    with client_of(server, target=target) as client:
        client.rank_many(PAIRS, metadata=[("x-request", "17")])
    assert [sent["x-request"] for _, _, sent in server.requests] == ["17"] * 2
    (request,) = server.predicts
    assert request.model_spec.signature_name == {"late": "columnar_late"}.get(target, target)
    sent = arrays(request)
    assert sent["row_to_user"].tolist() == [0, 0, 0, 1, 2, 2]
    assert sent["age"].tolist() == [31, 47, 31]
    assert sent["history"].tolist() == [[1, 2, 3], [5, 0, 0], [1, 2, 3]]
    assert sent["history/length"].tolist() == [3, 1, 3]
    assert sent["movie"].tolist() == [7, 9, 11, 7, 9, 11]
    assert sent["year"].tolist() == [2001.0, 1984.0, 1990.0, 2001.0, 1984.0, 1990.0]


def test_rows_in_which_the_user_varies_are_asked_for_alone(serves: Any, parts: ModelSchema):
    server = serves(parts)
    rows = [{**USER, "age": 30 + i, **item} for i, item in enumerate(ITEMS)]
    with client_of(server) as client:
        found = client.rank_many([(None, rows), (USER, ITEMS)])
    assert [len(one.scores) for one in found] == [3, 3]
    assert server.count("Predict") == 2


async def test_a_ranking_per_user_awaited(serves: Any, parts: ModelSchema):
    server = serves(parts, knows_users)
    async with AsyncRankingClient(
        server.address, "movies", timeout_seconds=120, score_output="scores"
    ) as client:
        prepared = await client.prepare(ITEMS)
        found = await client.rank_many([(USER, prepared), (OTHER, prepared)])
        alone = [await client.rank(user, ITEMS) for user in (USER, OTHER)]
        assert server.count("Predict") == 3
        assert [one.scores.tolist() for one in found] == [one.scores.tolist() for one in alone]


@pytest.mark.parametrize(
    ("sizes", "requests"), [([1500, 1500, 1500, 3], 2), ([2048, 2048], 1), ([2048, 2049], 2)]
)
def test_a_request_has_at_most_4096_candidates(
    serves: Any, parts: ModelSchema, sizes: list[int], requests: int
):
    server = serves(parts, knows_users)
    many = {name: values * 1000 for name, values in COLUMNS.items()}
    pairs = [
        ({**USER, "age": age}, {name: values[:size] for name, values in many.items()})
        for age, size in enumerate(sizes)
    ]
    with client_of(server, score_output="scores") as client:
        found = client.rank_many(pairs)
    assert server.count("Predict") == requests
    assert [len(one.scores) for one in found] == sizes


def test_no_pairs_and_invalid_pairs(serves: Any, parts: ModelSchema):
    server = serves(parts, knows_users)
    with client_of(server) as client:
        assert client.rank_many([]) == []
        with pytest.raises(
            InputError, match=r"pairs\[0\]: expected a pair of user and items, got dict"
        ):
            client.rank_many([USER, OTHER])  # type: ignore[list-item]
        with pytest.raises(InputError, match="feature 'city': missing"):
            client.rank_many([(USER, ITEMS), ({"age": 1}, ITEMS)])


@pytest.mark.parametrize(("in_parts", "requests"), [(True, 1), (False, 4)])
def test_lists_of_different_widths_meet_only_where_the_model_does_not_see_it(
    serves: Any, schema: ModelSchema, parts: ModelSchema, in_parts: bool, requests: int
):
    server = serves(parts if in_parts else schema, knows_users)
    users = [{**OTHER, "history": [n] * length} for n, length in enumerate([3, 1, 3, 2, 1, 0])]
    with client_of(server, score_output="scores") as client:
        found = client.rank_many([(user, ITEMS[n % 2 :]) for n, user in enumerate(users)])
        assert server.count("Predict") == requests
        for n, (one, user) in enumerate(zip(found, users, strict=True)):
            alone = client.rank(user, ITEMS[n % 2 :])
            np.testing.assert_array_equal(one.scores, alone.scores)


def test_a_sequence_whose_padding_the_model_sees_keeps_its_width():
    features = (spec("user", "int64", 1, None), spec("item", "int64", None))
    columnar = (spec("user", "int64", None, None), spec("item", "int64", None))
    seen = ModelSchema(
        "m",
        1,
        {
            "columnar": signature("columnar", *columnar),
            "columnar_late": signature("columnar_late", *features),
            "columnar_pair": signature("columnar_pair", spec("row_to_user", "int64", None)),
        },
        can=CAN,
    )
    pairs = [({"user": [1] * length}, [{"item": 1}]) for length in (2, 3, 2)]
    groups = grouped(seen, pairs, [request_options("m")] * 3)
    assert [list(group.places) for group in groups] == [[0, 2], [1]]


# Sending a user ahead of the candidates.


def test_prefetch_sends_the_user_and_no_candidate(serves: Any, schema: ModelSchema):
    server = serves(schema)
    with client_of(server) as client:
        assert client.prefetch(pd.Series(USER))
        sent = server.predicts[-1]
        ranked = predict_pb2.PredictRequest.FromString(client.encode(USER, ITEMS))
        with pytest.raises(InputError, match="feature 'city': missing"):
            client.prefetch({"age": 1})
    assert sent.model_spec.signature_name == "columnar_late"
    for name, tensor in sent.inputs.items():
        late = schema.signature("columnar_late").inputs[name].shape
        assert late is not None
        if late[0] == 1:  # the server finds the user's state by these exact bytes
            assert tensor == ranked.inputs[name]
        else:
            assert tensor.tensor_shape.dim[0].size == 0
    assert set(sent.inputs) == set(ranked.inputs)


async def test_prefetch_without_a_late_signature_sends_nothing(serves: Any, schema: ModelSchema):
    server = serves(without_late(schema))
    async with AsyncRankingClient(server.address, "movies", timeout_seconds=120) as client:
        assert not await client.prefetch(USER)
    assert not server.count("Predict")
