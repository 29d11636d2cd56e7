"""The rule on signatures: a user's repeated list, and TensorFlow 1's control flow."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export.convert._features import Feature, Kind
from colcast.export.convert._parse_op import parsed_tensors
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import FlatGraph
from colcast.export.graph._signature import Signature
from colcast.export.rows import Fact, Walk
from colcast.export.rows._facts import R
from colcast.export.rows._independence import Independence, candidates, judge
from colcast.export.trials._parity import scored_alike
from colcast.export.trials._rows import Rows

from .fuzz import Tally, Verdict, fuzz

v1 = tf.compat.v1
C = Mapping[str, Any]
_USER = {"ids": (tf.int64, [1, None]), "ids/length": (tf.int64, [1])}
TABLE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def sparse(columns: C, name: str) -> Any:
    """A list as the parse op returns it."""
    return tf.SparseTensor(*parsed_tensors(Feature(name, Kind.VAR_LEN, "int64"), columns))


def ragged(columns: C, name: str) -> Any:
    tensors = parsed_tensors(Feature(name, Kind.RAGGED, "int64"), columns)
    return tf.RaggedTensor.from_row_splits(*tensors, validate=False)


def verdict(score: Callable[[C, Any], Any]) -> Independence:
    """The rule's verdict on a signature that takes one user, who has a list."""
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        user = {
            name: v1.placeholder(dtype, shape, name=name.replace("/", "_"))
            for name, (dtype, shape) in _USER.items()
        }
        item = v1.placeholder(tf.float32, [None], name="item")
        output = tf.identity(score(user, item))
        tensors = {name: column.name for name, column in user.items()}
        signature = Signature(tensors, {"item": item.name}, {}, {"out": output.name})
        return candidates(v1.train.export_meta_graph(graph=graph), session, signature)


def repeated(column: Any, item: Any) -> Any:
    """Repeats a column of one row for every candidate."""
    multiples = tf.concat([tf.shape(item), tf.ones([len(column.shape) - 1], tf.int32)], 0)
    return tf.tile(tf.ensure_shape(column, column.shape), multiples)


def as_sparse(user: C, item: Any) -> Any:
    columns = {name: repeated(column, item) for name, column in user.items()}
    table = tf.constant(TABLE)
    return item * tf.nn.safe_embedding_lookup_sparse(table, sparse(columns, "ids"))[:, 0]


def as_ragged(user: C, item: Any) -> Any:
    columns = {name: repeated(column, item) for name, column in user.items()}
    vectors = tf.gather(tf.constant(TABLE), ragged(columns, "ids"))
    return item * tf.reduce_sum(vectors, 1)[:, 0]


def with_lengths(lengths: Callable[[Any], Any]) -> Callable[[C, Any], Any]:
    """Makes a score from a list with row splits of the model's own."""

    def score(user: C, item: Any) -> Any:
        columns = {name: repeated(column, item) for name, column in user.items()}
        ends = tf.cumsum(lengths(columns["ids/length"]))
        splits = tf.concat([tf.constant([0], tf.int64), ends], 0)
        vectors = tf.gather(tf.constant(TABLE), ragged(columns, "ids").values)
        lists = tf.RaggedTensor.from_row_splits(vectors, splits, validate=False)
        return item * tf.reduce_sum(lists, 1)[:, 0]

    return score


@pytest.mark.parametrize("score", [as_sparse, as_ragged])
def test_a_repeated_list_belongs_to_each_candidate(score: Callable[[C, Any], Any]) -> None:
    assert verdict(score) == Independence(rows=True)


@pytest.mark.parametrize("lengths", [lambda n: n, lambda n: n + 1, lambda n: tf.minimum(n, 0)])
def test_only_the_converters_row_splits_are_those_of_a_list(lengths: Callable[[Any], Any]) -> None:
    found = verdict(with_lengths(lengths))
    assert not found.rows
    assert "Cumsum" in found.why_not


OF_USER = ("rows:user",)
BY_ROW, BY_VALUE = Fact("ids", (R,), of=OF_USER), Fact("rows", (R,))


def summed(lists: Any, rows: Any) -> Any:
    return tf.math.unsorted_segment_sum(lists.values, lists.indices[:, 0], rows)


@pytest.mark.parametrize(
    ("index", "score", "independent"),
    [
        (BY_ROW, summed, True),
        (BY_ROW, lambda lists, rows: tf.reduce_sum(tf.sparse.to_dense(lists), 1), False),
        (BY_VALUE, summed, False),
    ],
    ids=["gathered by each row's user", "as wide as the longest", "gathered by a value"],
)
def test_a_list_made_from_states_again(index: Fact, score: Any, independent: bool) -> None:
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        states = [v1.placeholder(tf.int64, [None, *inner]) for inner in ([None], [])]
        which = v1.placeholder(tf.int64, [None])
        columns = [tf.gather(state, which) for state in states]
        lists = sparse(dict(zip(_USER, columns, strict=True)), "ids")
        output = score(lists, tf.shape(which)[0])
        of_states = [
            Fact("rows", (OF_USER, ("?width",))),
            Fact("rows", (OF_USER,), of="counts:?ids"),
        ]
        given = {t.name: f for t, f in zip([*states, which], [*of_states, index], strict=True)}
        flat = FlatGraph(v1.train.export_meta_graph(graph=graph), [output.name])
        assert judge(Walk(flat, session, given).facts, {"out": output.name}).rows == independent


raw = tf.raw_ops


def switched(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """A branch as tf.cond builds it in TensorFlow 1."""
    no, yes = raw.Switch(data=condition, pred=condition)
    with tf.control_dependencies([tf.identity(yes)]):
        first = then()
    with tf.control_dependencies([tf.identity(no)]):
        second = otherwise()
    return raw.Merge(inputs=[second, first]).output


def two_or_one(condition: Any) -> Any:
    """A branch between two constants."""
    return switched(condition, lambda: tf.constant(2.0), lambda: tf.constant(1.0))


def a_weight_is_positive() -> Any:
    """A condition with the same value in every run."""
    return tf.Variable(1.0, use_resource=True) > 0


def nested(c: C, condition: Any) -> Any:
    """A branch whose two sides are branches."""
    outer = a_weight_is_positive()
    inner = tf.identity(condition)
    return c["f"] * switched(outer, lambda: two_or_one(inner), lambda: two_or_one(inner))


def behind_a_check(c: C) -> Any:
    """A branch that does not depend on rows, after a check that does."""
    with tf.control_dependencies([two_or_one(tf.reduce_all(c["i"] >= 0))]):
        doubled = c["f"] * 2
    return switched(a_weight_is_positive(), lambda: tf.identity(doubled), lambda: c["f"] * 1)


def judged(build: Callable[[C], Any]) -> Verdict:
    (found,) = fuzz([0], Tally(), [build])
    return found


@pytest.mark.parametrize(
    "build",
    [
        lambda c: c["f"] * two_or_one(tf.reduce_any(c["i"] > 2)),
        lambda c: nested(c, tf.reduce_any(c["i"] > 2)),
        lambda c: c["f"] * two_or_one(tf.shape(c["f"])[0] > 3),
        lambda c: c["f"] * two_or_one(c["ids"].dense_shape[1] > 3),
    ],
    ids=["on rows", "nested", "on their number", "on the longest list"],
)
def test_a_branch_on_rows_mixes_them_even_between_constants(build: Any) -> None:
    assert not judged(build)[0]


@pytest.mark.parametrize("build", [behind_a_check, lambda c: c["f"] * two_or_one(True)])
def test_other_branches_are_refused(build: Any) -> None:
    rows, why = judged(build)
    assert not rows
    assert "(Merge " in str(why)


TOLERANCE = 1e-5


def rows(*values: float) -> Rows:
    price = Feature("price", Kind.FIXED_LEN, "float32", (1,))
    return Rows.of([price], {"price": [[value] for value in values]})


def prices(of: Rows) -> Any:
    return of.columns()["price"][:, 0]


SCORES: dict[str, tuple[Callable[[Any], Any], list[float], bool]] = {
    "rows of their own": (lambda price: price * 2, [1.0, -2.0, 3.0, 7.0], True),
    "rows that meet": (lambda price: price - price.mean(), [1.0, -2.0, 3.0, 7.0], False),
    "integers, which have no tolerance": (
        lambda price: 1_000_000_000 + (price == price.max()),
        [1.0, 2.0, 3.0],
        False,
    ),
    "NaN, which is like NaN": (
        lambda price: np.where(price > 2, np.nan, price),
        [1.0, 2.0, 3.0],
        True,
    ),
    "large floats that nearly cancel out": (
        lambda price: price + np.float32(1e-4 * len(price)) * (np.abs(price) > 100),
        [1.0, 500.0, -3.0, 7.0],
        True,
    ),
    "a small difference": (lambda price: price + price.mean(), [1.0, 2.0, 3.0], False),
    "one near rounding": (lambda price: price + 1e-4 * price.mean(), [1.0, 2.0, 3.0], False),
    "small scores beside a large one": (
        lambda price: price + 0.5 * len(price),
        [1.0, 1e9, -3.0, 7.0],
        False,
    ),
    "another number of rows": (lambda price: price[:1], [1.0, 2.0], False),
}


@pytest.mark.parametrize(("score", "values", "alike"), SCORES.values(), ids=SCORES)
def test_scores_together_and_apart_are_alike_up_to_rounding(
    score: Callable[[Any], Any], values: list[float], alike: bool
) -> None:
    found = scored_alike(lambda of: {"scores": score(prices(of))}, rows(*values), TOLERANCE)
    assert found is alike


@pytest.mark.parametrize("short", [1, 3])
def test_rows_with_short_lists_are_scored_without_long_ones(short: int) -> None:
    seen = Feature("seen", Kind.VAR_LEN, "int64", ())
    several = Rows.of([seen], {"seen": [[1] * count for count in [2] * short + [5] * 6]})

    def by_longest(of: Rows) -> Any:
        is_short = of.columns()["seen"].shape[1] < 5 and len(of) >= short
        return {"scores": np.full(len(of), is_short, np.float32)}

    assert scored_alike(by_longest, several, TOLERANCE) is False
    assert scored_alike(by_longest, several, TOLERANCE, ["seen"])


def test_rows_that_the_model_refuses_show_nothing():
    def refuse(_: Rows) -> Any:
        raise ExportError("no such price")

    assert scored_alike(refuse, rows(1.0, 2.0), TOLERANCE) is None
