"""Answers as a caller uses them: tables, notebooks, the printed schema."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from colcast.client import InputError, ModelSchema, Ranking
from colcast.client.columns._inputs import Rows
from colcast.client.request._request import build_request

from .conftest import ITEMS, USER, request_options

OUTPUTS = {
    "scores": np.array([0.1, 0.9, 0.5], np.float32),
    "click": np.array([[1], [2], [3]], np.float32),
    "vector": np.zeros((3, 2), np.float32),
}
RANKING = Ranking(OUTPUTS, 7, score_output="scores")


def test_a_table_of_the_ranking_is_best_first():
    table = RANKING.to_pandas()
    assert table.index.name == "row"
    assert table.index.tolist() == RANKING.order.tolist() == [1, 2, 0]
    assert table.columns.tolist() == ["score", "click"]
    np.testing.assert_array_equal(table["score"], np.float32([0.9, 0.5, 0.1]))
    assert table["click"].tolist() == [2.0, 3.0, 1.0]


def test_the_ranked_frame_gets_the_scores_beside_it():
    frame = pd.DataFrame({"title": ["a", "b", "c"], "score": [5, 6, 7]}, index=[10, 11, 12])
    table = RANKING.to_pandas(frame)
    assert table.index.tolist() == [11, 12, 10]
    assert table.columns.tolist() == ["title", "score", "score_output", "click"]
    assert table["title"].tolist() == ["b", "c", "a"]
    assert table["score"].tolist() == [6, 7, 5]
    np.testing.assert_array_equal(table["score_output"], np.float32([0.9, 0.5, 0.1]))
    with pytest.raises(InputError, match="items has 2 rows, 3 were ranked"):
        RANKING.to_pandas(frame[:2])


@pytest.mark.parametrize(
    "items",
    [
        [{"title": "a"}, {"title": "b"}, {"title": "c"}],
        {"title": ["a", "b", "c"]},
        {"title": np.array(["a", "b", "c"])},
        pl.DataFrame({"title": ["a", "b", "c"]}),
        pa.table({"title": ["a", "b", "c"]}),
    ],
    ids=lambda items: type(items).__name__,
)
def test_other_objects_become_a_frame(items: Any):
    table = RANKING.to_pandas(items)
    assert table["title"].tolist() == ["b", "c", "a"]
    assert table.index.tolist() == [1, 2, 0]


def test_vectors_of_ranked_items_are_lists():
    table = RANKING.to_pandas({"v": np.arange(6).reshape(3, 2)})
    assert [list(row) for row in table["v"]] == [[2, 3], [4, 5], [0, 1]]
    with pytest.raises(InputError, match="items are not the ones that were ranked"):
        RANKING.to_pandas({"v": [1, 2], "w": [1]})


def test_a_table_keeps_the_types_of_the_frame_even_if_nothing_was_ranked():
    frame = pd.DataFrame({"kind": pd.Categorical(["a", "b", "a"]), "n": pd.array([1, None, 3])})
    assert RANKING.to_pandas(frame).dtypes[:2].tolist() == frame.dtypes.tolist()
    empty = Ranking({"scores": np.empty(0, np.float32)})
    assert empty.to_pandas().empty
    assert empty.to_pandas(frame[:0]).columns.tolist() == ["kind", "n", "score"]


def test_a_ranking_of_rows_has_no_keys():
    assert RANKING.keys == {}
    with pytest.raises(InputError, match="which keys"):
        RANKING.top_keys(1)


@pytest.mark.parametrize("named", ["probabilities[:, 1]", "probabilities[:,-1]"])
def test_a_column_of_an_output_ranks(named: str):
    both = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], np.float32)
    ranking = Ranking({"probabilities": both, "click": OUTPUTS["click"]}, score_output=named)
    assert ranking.scores.tolist() == both[:, 1].tolist()
    assert ranking.order.tolist() == [1, 2, 0]
    assert ranking.to_pandas().columns.tolist() == ["score", "click"]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("vector", r"'vector' is not one float per row, .*\]; score_output=\"NAME\[:, 1\]\" ranks"),
        ("vector[:, 2]", "'vector' is not floats with a column 2, to rank by: click"),
        ("scores[:, 0]", "'scores' is not floats with a column 0"),
        ("other[:, 0]", "no output 'other'; the outputs are click"),
    ],
)
def test_a_missing_column_is_named(named: str, message: str):
    with pytest.raises(InputError, match=message):
        _ = Ranking(OUTPUTS, score_output=named).scores


def test_a_schema_reads_as_a_sorted_list_of_features(schema: ModelSchema):
    lines = str(schema).splitlines()
    assert lines[0] == "model 'movies', version 3"
    assert lines[1] == "columnar -> scores float32"
    late = lines.index("columnar_late -> scores float32")
    assert lines[late + 1 :] == [
        "  age      int64, user",
        "  city     string, user",
        "  genres   string [any], list",
        "  history  int64 [any], list, user",
        "  movie    int64",
        "  vector   float32 [3]",
        "  year     float32, default 1990.0",
        "serving_default -> scores float32",
        "  examples: serialized tf.Examples",
    ]
    assert repr(schema) == str(schema)


def test_the_user_may_be_a_series(schema: ModelSchema):
    options = request_options()
    by_series = build_request(schema, Rows(ITEMS, pd.Series(USER)), options)
    assert by_series.message == build_request(schema, Rows(ITEMS, USER), options).message
    twice = pd.Series([1, 2], index=["age", "age"])
    with pytest.raises(InputError, match="feature 'age': given 2 times in user"):
        build_request(schema, Rows(ITEMS, twice), options)
    with pytest.raises(InputError, match=r"got DataFrame; a frame's first row is frame.iloc\[0\]"):
        build_request(schema, Rows(ITEMS, pd.DataFrame([USER])), options)
    row = pd.DataFrame([USER]).iloc[0]
    assert build_request(schema, Rows(ITEMS, row), options).message == by_series.message
