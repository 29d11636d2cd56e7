"""Rewrites of random graphs, and of graphs with NaN that a fused Relu turns into 0."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import Columns, variable
from .test_domains import staged

COLUMNS = {
    "age": (tf.float32, [6]),
    "word": (tf.int64, []),
    "price": (tf.float32, [6]),
    "far": (tf.float32, [2]),
}
UNITS = 8


def _folded(x: Any) -> Any:
    product = tf.matmul(tf.reshape(tf.stack([x, x], 1), [-1, x.shape[-1]]), _weights(x))
    return tf.reshape(tf.nn.relu(tf.nn.bias_add(product, _bias())), [-1, 2 * UNITS])


def _towers(x: Any) -> list[Any]:
    """Two products: of the user's columns, and of all other columns."""
    sides = enumerate(tf.split(x, [6, x.shape[-1] - 6], 1))
    with tf.compat.v1.variable_scope("towers", reuse=tf.compat.v1.AUTO_REUSE):
        return [tf.matmul(side, variable(f"w{n}", side.shape[-1], UNITS)) for n, side in sides]


def _weights(x: Any, units: int = UNITS) -> Any:
    return variable("w", x.shape[-1], units)


def _bias(units: int = UNITS) -> Any:
    return variable("b", units)


LAYERS: dict[str, Callable[[Any], Any]] = {
    "bias": lambda x: tf.nn.relu(tf.nn.bias_add(tf.matmul(x, _weights(x)), _bias())),
    "addition": lambda x: tf.nn.relu6(tf.matmul(x, _weights(x)) + _bias()),
    "bias of a row": lambda x: tf.nn.relu(
        tf.matmul(x, _weights(x)) + tf.reshape(_bias(), [1, UNITS])
    ),
    "scalar bias": lambda x: tf.nn.relu(tf.matmul(x, _weights(x)) + 0.5),
    "no bias": lambda x: tf.nn.relu(tf.matmul(x, _weights(x))),
    "one unit": lambda x: tf.nn.relu(tf.nn.bias_add(tf.matmul(x, _weights(x, 1)), _bias(1))),
    "folded": _folded,
    "sum": lambda x: tf.nn.relu(_towers(x)[0] + _towers(x)[1]),
    "sum of three": lambda x: tf.nn.relu(tf.add_n([*_towers(x), *_towers(x)[:1]])),
    "tanh": lambda x: tf.tanh(tf.nn.bias_add(tf.matmul(x, _weights(x)), _bias())),
}

NOT_FUSED = ("scalar bias", "no bias", "sum", "sum of three", "tanh")  # these layers keep NaN


def _model(model: Any, layer: str, of_price: Callable[[Any], Any], **options: Any) -> Any:
    def build(c: Columns) -> Columns:
        word = tf.gather(variable("words", 20, 6), tf.math.floormod(c["word"], 20))
        hidden = LAYERS[layer](tf.concat([c["age"], word, of_price(c["price"]), c["far"]], 1))
        return {"score": tf.matmul(hidden, variable("last", hidden.shape[-1], 1))}

    return model(build, COLUMNS, ["age"], **options)


def _columns(built: Any, rows: int, users: int) -> Columns:
    drawn = built.rows(rows)
    return {n: np.repeat(c[:1], users, 0) if n == "age" else c for n, c in drawn.items()}


def _add_stages(built: Any) -> bool:
    return built.add_stages(context=["far"]).written


def _by_stages(built: Any, columns: Columns) -> Any:
    user = built.run("columnar_user", {"age": columns["age"]})
    items = built.run("columnar_item", {name: columns[name] for name in ("word", "price")})
    rows = {"row_to_user": np.zeros(len(columns["word"]), int), "user_state/row": np.zeros(1, int)}
    return built.run("columnar_pair", {**user, **items, **rows, "far": columns["far"]})["score"]


@pytest.mark.parametrize("layer", LAYERS)
def test_late_treats_nan_as_the_model_does(model: Any, layer: str) -> None:
    built = _model(model, layer, lambda price: price)
    columns = _columns(built, 9, 1)
    columns["price"][4] = np.nan
    repeated = {**columns, "age": np.repeat(columns["age"], 9, 0)}
    expected = built.run("columnar", repeated)["score"]
    np.testing.assert_allclose(built.run("columnar_late", columns)["score"], expected, 1e-5, 1e-6)


@pytest.mark.parametrize("of_price", [tf.math.log1p, tf.sqrt, lambda x: (x - x) / (x - x[:, ::-1])])
@pytest.mark.parametrize("layer", LAYERS)
def test_stages_score_what_gives_nan_inside_as_the_model_does(
    model: Any, layer: str, of_price: Callable[[Any], Any]
) -> None:
    built = _model(model, layer, of_price)
    assert _add_stages(built)
    columns = _columns(built, 40, 1)
    expected = built.run("columnar", {**columns, "age": np.repeat(columns["age"], 40, 0)})["score"]
    assert layer in NOT_FUSED or np.isfinite(expected).all()
    np.testing.assert_allclose(_by_stages(built, columns), expected, 1e-5, 1e-6)


def test_a_wide_tolerance_lets_no_other_score_through(model: Any) -> None:
    built = _model(model, "bias", tf.math.log1p, tolerance=0.05)
    assert _add_stages(built)
    columns = _columns(built, 40, 1)
    expected = built.run("columnar", {**columns, "age": np.repeat(columns["age"], 40, 0)})["score"]
    np.testing.assert_allclose(_by_stages(built, columns), expected, 1e-5, 1e-6)


@pytest.mark.parametrize("layer", ["bias", "addition", "one unit"])
def test_columns_with_nan_are_not_scored_by_stages(model: Any, layer: str) -> None:
    built = _model(model, layer, lambda price: price)
    _add_stages(built)
    columns = _columns(built, 9, 1)
    assert np.isfinite(_by_stages(built, columns)).all()
    for name in ("age", "price", "far"):
        spoiled = {**columns, name: np.full_like(columns[name], np.nan)}
        with pytest.raises(tf.errors.InvalidArgumentError, match="NaN or infinite values reach"):
            _by_stages(built, spoiled)


@pytest.mark.parametrize("beside", [(), ("price",)], ids=["only Relus", "Relus and a column"])
def test_concatenated_relus_treat_nan_as_the_model_does(
    model: Any, beside: tuple[str, ...]
) -> None:
    def build(c: Columns) -> Columns:
        age, far, price = (
            (tf.matmul(c[name], variable(f"w_{name}", c[name].shape[-1], 8)), variable(name, 8))
            for name in ("age", "far", "price")
        )
        sums = [age[0] + age[1], far[1] + far[0], price[0] + price[1]]
        towers = [tf.nn.relu(one) for one in sums]
        x, again = (tf.concat([*towers, *(c[name] for name in beside)], 1) for _ in range(2))
        hidden = tf.tanh(tf.matmul(x, variable("w", x.shape[-1], 4)))
        hidden += tf.tanh(tf.matmul(again, variable("w2", x.shape[-1], 4)))
        return {"score": tf.matmul(hidden, variable("last", 4, 1))}

    user, shapes = ["age", "far"], {name: COLUMNS[name] for name in ("age", "far", "price")}
    built = model(build, shapes, user)
    assert built.add_stages().written
    drawn = built.rows(9)
    for spoiled in shapes:
        columns = {n: c[:1] if n in user else c for n, c in drawn.items()}
        columns[spoiled] = np.full_like(columns[spoiled], np.nan)
        repeated = {n: np.repeat(c, 9, 0) if n in user else c for n, c in columns.items()}
        expected = built.run("columnar", repeated)["score"]
        assert np.isfinite(expected).all() == (beside != () and spoiled != "price")
        states = built.run("columnar_user", {name: columns[name] for name in user})
        states |= built.run("columnar_item", {"price": columns["price"]})
        rows = {"row_to_user": np.zeros(9, int), "user_state/row": np.zeros(1, int)}
        for found in (
            built.run("columnar_late", columns),
            built.run("columnar_pair", states | rows),
        ):
            np.testing.assert_allclose(found["score"], expected, 1e-5, 1e-6)


def _layer_norm(x: Any) -> Any:
    mean, variance = tf.nn.moments(x, [1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-3) * variable("gamma", 8) + variable("beta", 8)


FUSED: dict[str, Callable[[Any], Any]] = {
    "swish": lambda x: x * tf.sigmoid(x),
    "gelu": tf.nn.gelu,
    "approximate gelu": lambda x: tf.nn.gelu(x, approximate=True),
    "mish": lambda x: x * tf.tanh(tf.math.softplus(x)),
    "leaky relu": tf.nn.leaky_relu,
    "maximum": lambda x: tf.maximum(x, 0.1 * x),
    "layer norm": _layer_norm,
}


@pytest.mark.parametrize("name", FUSED)
def test_fused_ops_move_and_leave_scores_unchanged(model: Any, name: str) -> None:
    def build(columns: dict[str, Any]) -> dict[str, Any]:
        with tf.compat.v1.variable_scope("user"):
            user = FUSED[name](tf.matmul(columns["age"], variable("w", 6, 8)) + variable("b", 8))
        with tf.compat.v1.variable_scope("item"):
            item = FUSED[name](tf.matmul(columns["price"], variable("w", 6, 8)) + variable("b", 8))
        return {"score": tf.reduce_sum(user * item, 1, keepdims=True)}

    built = model(build, {"age": (tf.float32, [6]), "price": (tf.float32, [6])}, ["age"])
    built.check()
    assert [tensor.how for tensor in built.report.frontier] == ["broadcast"]
    stages = built.add_stages()
    assert [state.shape for state in stages.user_states] == [(1, 8)]
    assert [state.shape for state in stages.item_states] == [(1, 8)]


SOURCES = ("age", "price", "size", "budget", "position")
Draw = Callable[[st.SearchStrategy[Any]], Any]


class _Drawn:
    """A random model of the ops that the splitter can follow, in any order."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._names = 0

    def score(self, columns: Columns) -> Columns:
        """The score: a product after several random steps on the columns."""
        x = self._joined(columns)
        for _ in range(self._draw(st.integers(0, 3))):
            x = self._changed(x, columns)
        wide = tf.reduce_sum(x * self._variable(x.shape[-1]), 1, keepdims=True)
        hidden = self._multiplied(x)
        return {"score": wide + tf.matmul(hidden, self._variable(hidden.shape[-1], 1))}

    def _joined(self, columns: Columns) -> Any:
        more = self._draw(st.lists(st.sampled_from(SOURCES), max_size=5))
        names = self._draw(st.permutations(["age", "price", *more]))
        return tf.concat([columns[name] for name in names], 1)

    def _changed(self, x: Any, columns: Columns) -> Any:
        width = x.shape[-1]
        steps: dict[str, Callable[[], Any]] = {
            "scale": lambda: x * self._variable(width),
            "subtract from": lambda: self._variable(1, width) - x,
            "halve": lambda: x / 2.0,
            "squash": lambda: tf.tanh(x),
            "gate": lambda: x * tf.sigmoid(x),
            "join more": lambda: tf.concat([columns["size"], x, columns["age"]], 1),
            "join itself": lambda: tf.concat([x, tf.nn.relu(x)], 1),
            "add what is elsewhere": lambda: x + tf.reverse(x, [1]),
            "add a cross": lambda: x + x * tf.matmul(x, self._variable(width, 1)),
        }
        return steps[self._draw(st.sampled_from(sorted(steps)))]()

    def _multiplied(self, x: Any) -> Any:
        units = self._draw(st.sampled_from([1, 3, 8, 40]))
        if self._draw(st.booleans()):
            product = tf.matmul(x, self._variable(units, x.shape[-1]), transpose_b=True)
        else:
            product = tf.matmul(x, self._variable(x.shape[-1], units))
        return tf.nn.relu(product + self._variable(units))

    def _variable(self, *shape: int) -> Any:
        self._names += 1
        return variable(f"drawn{self._names}", *shape)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_a_graph_cut_into_stages_scores_as_it_does_whole(model: Any, data: Any) -> None:
    stages = staged(model, _Drawn(data.draw).score)
    for candidates, shops, campaigns in ((1, 1, 1), (23, 4, 2)):
        users = min(3, candidates) if stages.report.users_per_run == "many" else 1
        counts = {"user": users, "shop": shops, "campaign": campaigns}
        stages.check(candidates, counts, stages.built.rows(candidates))
