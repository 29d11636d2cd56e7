"""Each distinct row of a domain is sent once, where that makes the request smaller."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from colcast.client import InputError, ModelSchema
from colcast.client.columns._column import Column
from colcast.client.columns._dtypes import BY_NAME
from colcast.client.columns._inputs import Rows
from colcast.client.request import _distinct
from colcast.client.request._distinct import distinct_rows
from colcast.client.request._prepared import PreparedItems
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import predict_pb2

from .conftest import ALL, CAN, arrays, client_of, message, signature, spec

# Finding rows that have the same bits.

DTYPES = sorted(BY_NAME.values(), key=str)


def bits(column: Column) -> list[bytes]:
    """For each row, its bits and its length."""
    lengths = np.zeros(column.rows) if column.lengths is None else column.lengths
    rows = [column.values[row : row + 1] for row in range(column.rows)]
    return [
        repr((row.tolist() if row.dtype == object else row.tobytes(), int(length))).encode()
        for row, length in zip(rows, lengths, strict=True)
    ]


@st.composite
def columns_of_few_rows(draw: st.DrawFn) -> list[Column]:
    """Columns of any dtype, all with the same number of rows but only a few distinct ones."""
    few, rows = draw(st.integers(1, 4)), draw(st.integers(1, 60))
    picked = np.array(draw(st.lists(st.integers(0, few - 1), min_size=rows, max_size=rows)))
    made = []
    for dtype in draw(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=7)):
        shape = (few, *draw(st.sampled_from([(), (1,), (3,), (2, 2), (0,)])))
        if dtype.kind == "O":
            words = draw(st.lists(st.sampled_from([b"", b"\0", b"a", b"a\0", b"b" * 300])))
            values = np.array([*words, b"", b"z"], object)
            values = np.resize(values, shape)
        else:
            size = int(np.prod(shape)) * dtype.storage.itemsize
            raw = draw(st.binary(min_size=size, max_size=size))
            values = np.frombuffer(raw, np.uint8)
            values = values & 1 if dtype.storage == np.bool_ else values
            values = values.view(dtype.storage).reshape(shape)
            if dtype.kind == "f" and dtype.storage.kind == "f" and values.size:
                special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf], dtype.storage)
                values = np.where(draw(st.booleans()), np.resize(special, shape), values)
        ragged = len(shape) == 2 and draw(st.booleans())
        lengths = np.arange(few) % (shape[1] + 1) if ragged else None
        made.append(Column(values, lengths).take(picked))
    return made


@settings(max_examples=300, deadline=None)
@given(columns_of_few_rows())
def test_rows_picked_by_the_index_are_those_that_came(columns: list[Column]):
    found = distinct_rows(columns)
    if found is None:
        return
    for column, distinct in zip(columns, found.columns, strict=True):
        assert distinct.values.dtype == column.values.dtype
        assert bits(distinct.take(found.rows)) == bits(column)
    rows = list(zip(*map(bits, found.columns), strict=True))
    assert len(set(rows)) == len(rows)
    assert found.saved > 0


def test_rows_stand_in_the_order_in_which_they_came():
    words = Column(np.array([b"b" * 20, b"a" * 20, b"b" * 20, b"c" * 20] * 9, object))
    found = distinct_rows([words])
    assert found is not None
    assert [value[:1] for value in found.columns[0].values] == [b"b", b"a", b"c"]
    assert found.rows.tolist() == [0, 1, 0, 2] * 9


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ([], "no column"),
        ([Column(np.empty((9, 0)))], "no byte"),
        ([Column(np.arange(100))], "all differ"),
        ([Column(np.arange(100) % 80), Column(np.zeros((100, 9)))], "most differ"),
        ([Column(np.arange(100) % 2)], "the index is as large"),
        ([Column(np.zeros(100, np.int8)), Column(np.arange(100) % 10)], "and so beside a byte"),
        ([Column(np.arange(9) % 2), Column(np.arange(9) // 2), Column(np.arange(9))], "all three"),
    ],
)
def test_columns_are_sent_unchanged_if_that_takes_no_more_bytes(columns: list[Column], why: str):
    assert distinct_rows(columns) is None, why


# How the client uses the distinct rows.

USER = {"user_age": 31}
N, SHOPS = 3000, 20


def _schema(*more: str) -> ModelSchema:
    """A model whose items, shops and queries have a stage."""
    columns = [
        spec("user_age", "int64", None),
        spec("item_id", "int64", None),
        spec("shop_name", "string", None),
        spec("shop_place", "float32", None, 4),
        spec("shop_tags", "int64", None, None),
        spec("shop_tags/length", "int64", None),
        spec("position", "int64", None),  # belongs to no domain
    ]
    late = [spec("user_age", "int64", 1), *columns[1:]]
    pair = [spec(f"row_to_{name}", "int64", None) for name in ("user", *more)]
    stages = {"user": columns[:1], "item": columns[1:2], "shop": columns[2:6]}
    signatures = [
        signature("columnar", *columns),
        signature("columnar_late", *late),
        signature("columnar_pair", *pair),
        *(signature(f"columnar_{name}", *own) for name, own in stages.items()),
    ]
    return ModelSchema("shops", 1, {each.name: each for each in signatures}, can=CAN)


SCHEMA = _schema("shop")
SHOP = np.random.default_rng(1).integers(0, SHOPS, N)
ITEMS: dict[str, Any] = {
    "item_id": np.arange(N),
    "shop_name": [f"shop {shop}" for shop in SHOP],
    "shop_place": np.outer(SHOP, np.ones(4, np.float32)).astype(np.float32),
    "shop_tags": [[int(shop)] * (shop % 5) for shop in SHOP],
    "position": np.arange(N) % 10,
}
TABLE = pa.table({**ITEMS, "shop_place": ITEMS["shop_place"].tolist()})
FORMS = {
    "columns": ITEMS,
    "dictionaries": TABLE.set_column(1, "shop_name", TABLE["shop_name"].dictionary_encode()),
}
"""test_every_form_gives_the_same_request tries the others."""


def inputs(items: Any, schema: ModelSchema = SCHEMA, target: Any = "auto", **more: Any) -> Any:
    """The request's inputs as arrays."""
    return arrays(message(schema, Rows(items, USER), target, **more))


def repeated(sent: dict[str, Any]) -> dict[str, Any]:
    """Expands every indexed column to one row per candidate."""
    made = {}
    for name, values in sent.items():
        index = sent.get(f"row_to_{name.partition('_')[0]}")
        if not name.startswith("row_to_"):
            made[name] = values if index is None else values[index]
    return made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target", ["auto", "late", "columnar"])
@pytest.mark.parametrize("prepared", [False, True])
def test_each_shop_is_sent_once(form: str, target: Any, prepared: bool):
    items = PreparedItems(FORMS[form]) if prepared else FORMS[form]
    sent = inputs(items, target=target)
    plain = inputs(FORMS[form], target=target, dedupe="off")
    assert "row_to_shop" not in plain
    assert {name for name in sent if name.startswith("row_to_")} == {"row_to_shop"}
    assert len(sent["shop_name"]) == len(sent["shop_tags/length"]) == SHOPS
    assert len(sent["item_id"]) == len(sent["position"]) == N
    found = repeated(sent)
    assert found.keys() == plain.keys()
    for name, values in plain.items():
        np.testing.assert_array_equal(found[name], values)


def test_features_of_no_stage_have_no_index():
    """The exporter gave shops no stage, so their features are columns of the candidates."""
    assert "row_to_shop" not in inputs(ITEMS, _schema())


def test_a_small_saving_is_not_worth_an_index():
    """An index must save 128 KiB, because servers do not join requests that have one."""
    items = {name: values[: N // 6] for name, values in ITEMS.items()}
    assert "row_to_shop" not in inputs(items)


def test_users_of_mixed_rows_are_sent_once():
    rows = {**ITEMS, "user_age": np.arange(N) % 3}
    sent = message(SCHEMA, Rows(rows))
    assert sent.model_spec.signature_name == "columnar"
    assert len(arrays(sent)["user_age"]) == N  # an index would be as large as the column


def test_the_late_signature_refuses_a_user_who_differs_by_row_though_an_index_would_pay():
    user, item = spec("user_place", "float32", None, 4), spec("item_id", "int64", None)
    signatures = [
        signature("columnar", user, item),
        signature("columnar_late", spec("user_place", "float32", 1, 4), item),
        signature("columnar_pair", spec("row_to_user", "int64", None)),
        signature("columnar_user", user),
        signature("columnar_item", item),
    ]
    schema = ModelSchema("m", 1, {each.name: each for each in signatures}, can=CAN)
    count = 20_000
    rows = {"item_id": np.arange(count), "user_place": np.eye(4)[np.arange(count) % 2]}
    assert "row_to_user" in arrays(message(schema, Rows(rows)))
    with pytest.raises(InputError, match=r"feature 'user_place', row 1: .* the same on every row"):
        message(schema, Rows(rows), "late")


def test_an_index_is_sent_only_to_servers_that_read_it():
    columns = dict(SCHEMA.signatures)
    columns["serving_default"] = signature("serving_default", spec("examples", "string", None))
    for can, target in itertools.product((CAN, frozenset[str]()), (*ALL, "auto", "example")):
        sent = inputs(ITEMS, ModelSchema("shops", 1, columns, can=can), target)
        indexed = any(name.startswith("row_to_") for name in sent)
        assert indexed == (can == CAN and target in ("auto", "late", "columnar")), target


@pytest.mark.parametrize("prepare", [False, True])
def test_shared_candidates_are_sent_once(
    serves: Any, monkeypatch: pytest.MonkeyPatch, prepare: bool
):
    def predict(request: bytes, _: Any) -> bytes:
        found = repeated(arrays(predict_pb2.PredictRequest.FromString(request)))
        scores = found["item_id"] + found["shop_place"].sum(1) + found["user_age"]
        response = predict_pb2.PredictResponse()
        response.outputs["scores"].CopyFrom(tf.make_tensor_proto(scores.astype(np.float32)))
        return response.SerializeToString()

    monkeypatch.setattr(_distinct, "_LEAST_SAVED", 0)
    server = serves(SCHEMA, predict)
    few: Any = {name: values[:50] for name, values in ITEMS.items()}
    with client_of(server) as client:
        few = client.prepare(few) if prepare else few
        found = client.rank_many([({"user_age": age}, few) for age in (1, 2, 3)])
    for age, ranking in zip((1, 2, 3), found, strict=True):
        np.testing.assert_array_equal(ranking.scores, np.arange(50) + 4 * SHOP[:50] + age)
    (sent,) = map(arrays, server.predicts)
    assert sent["row_to_user"].tolist() == [0] * 50 + [1] * 50 + [2] * 50
    assert len(sent["user_age"]) == 3
    assert len(sent["shop_name"]) == len(set(SHOP[:50].tolist()))
    assert len(sent["position"]) == 150
