"""Stages of domains that a model's owner names; each shop's row is computed once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import ExportError

from .conftest import Columns, Staged, variable

COLUMNS = {
    "age": (tf.float32, [6]),
    "price": (tf.float32, [6]),
    "item": (tf.int64, []),
    "shop": (tf.int64, []),
    "size": (tf.float32, [12]),
    "tags": (tf.int64, [None]),
    "tags/length": (tf.int64, []),
    "budget": (tf.float32, [12]),
    "position": (tf.float32, [1]),
}
USER = ["age"]
OF_SHOP = ["shop", "size", "tags"]
DOMAINS = {"campaign": ["budget"], "shop": OF_SHOP}
Build = Callable[[Columns], Columns]


def _table(name: str, ids: Any) -> Any:
    return tf.gather(variable(name, 20, 6), tf.math.floormod(ids, 20))


def _dense(name: str, x: Any, units: int = 8) -> Any:
    return tf.nn.relu(
        tf.matmul(x, variable(name, x.shape[-1], units)) + variable(f"{name}b", units)
    )


def _tags(c: Columns) -> Any:
    mask = tf.sequence_mask(c["tags/length"], tf.shape(c["tags"])[1], tf.float32)
    return tf.reduce_sum(_table("tags", c["tags"]) * mask[:, :, None], 1)


def _score(*of: Any) -> Columns:
    return {"score": tf.matmul(_dense("top", tf.concat(of, 1)), variable("last", 8, 1))}


def _shop(c: Columns) -> Any:
    return _dense("shop", tf.concat([_table("id", c["shop"]), c["size"], _tags(c)], 1))


def _towers(c: Columns) -> Columns:
    return _score(c["age"], c["price"], _shop(c), _dense("campaign", c["budget"]), c["position"])


def _one_product(c: Columns) -> Columns:
    return _score(_table("item", c["item"]), c["price"], c["age"], c["size"], _tags(c), c["budget"])


def _rows_between_each_other(c: Columns) -> Columns:
    return _score(c["size"], c["price"], _tags(c), c["age"], c["budget"], _table("i", c["item"]))


def _normalised(c: Columns) -> Columns:
    x = tf.concat([c["position"], c["size"], c["price"], _table("i", c["item"]), c["budget"]], 1)
    x = x * (variable("gamma", 37) + 1.0) + variable("beta", 37)
    return _score(_dense("all", x), c["age"])


def _softmax_over_candidates(c: Columns) -> Columns:
    alike = tf.nn.softmax(_shop(c), axis=0)
    return _score(c["age"], c["price"], alike, _dense("campaign", c["budget"]))


def _counts_candidates(c: Columns) -> Columns:
    many = tf.cast(tf.shape(c["size"])[0], tf.float32)
    of_shop = _dense("shop", c["size"] - tf.reduce_mean(c["size"], 0, keepdims=True) / many)
    return _score(c["age"], c["price"], of_shop, _dense("campaign", c["budget"]))


def _linear(c: Columns) -> Columns:
    x = tf.concat([c["size"], c["age"], c["price"], c["position"], c["budget"]], 1)
    wide = tf.reduce_sum(x * variable("wide", 37), 1, keepdims=True)
    return {"score": wide + _score(c["age"], _table("i", c["item"]))["score"]}


def _both_halves(c: Columns) -> Any:
    halves = [tf.reshape(c[name], [-1, 2, c[name].shape[-1] // 2]) for name in _HALVED]
    return tf.concat(halves, 2)


def _batch_product(c: Columns) -> Columns:
    each = tf.nn.relu(tf.matmul(_both_halves(c), variable("each", 18, 4)) + variable("b", 4))
    return _score(tf.reshape(each, [-1, 8]), c["position"])


def _folded_product(c: Columns) -> Columns:
    each = tf.nn.relu(tf.tensordot(_both_halves(c), variable("each", 18, 4), 1) + variable("b", 4))
    return _score(tf.reshape(each, [-1, 8]), c["position"])


_HALVED = ("price", "size", "age", "budget")
MODELS = [
    _towers, _one_product, _rows_between_each_other, _normalised, _softmax_over_candidates,
    _counts_candidates, _linear, _batch_product, _folded_product,
]  # fmt: skip


def staged(
    model: Any,
    build: Build,
    domains: Mapping[str, Sequence[str]] = DOMAINS,
    user: Sequence[str] = USER,
) -> Staged:
    """A model with its stages; `position` belongs to the candidates."""
    built = model(build, COLUMNS, list(user))
    staged = Staged(built, domains=domains, context=["position"])
    assert staged.report.written, staged.report.reason
    return staged


@pytest.mark.parametrize("build", MODELS)
def test_rows_that_candidates_share_score_as_the_model_itself(model: Any, build: Build) -> None:
    stages = staged(model, build)
    assert "shop" in stages.report.domains or build is _counts_candidates
    assert "campaign" in stages.report.domains
    takes_many = stages.report.users_per_run == "many"
    assert takes_many or build in (_counts_candidates, _softmax_over_candidates)
    many = 3 if takes_many else 1
    for candidates, shops_, campaigns in ((1, 1, 1), (17, 5, 2), (40, 40, 1), (150, 3, 7)):
        counts = {"shop": shops_, "campaign": campaigns}
        columns = stages.built.rows(candidates)
        stages.check(candidates, counts, columns)
        stages.check(candidates, {**counts, "user": min(many, candidates)}, columns)
    stages.built.retrain()
    stages.check(17, {"shop": 5, "campaign": 2, "user": many}, stages.built.rows(17))


def test_signatures_keep_the_contract(model: Any) -> None:
    stages = staged(model, _towers)
    report, pair = stages.report, stages.signatures["columnar_pair"]
    assert report.domains == ("user", "item", "campaign", "shop")
    assert report.signatures == tuple(f"columnar_{s}" for s in (*report.domains, "pair"))
    assert set(report.independence) == set(report.signatures)
    assert all(found.rows for found in report.independence.values())
    assert report.users_per_run == "many"
    assert stages.columns_of("shop") == {*OF_SHOP, "tags/length"}
    assert [state.shape for state in report.states["shop"]] == [(1, 8)]
    states = {f"{d}_state/0" for d in ("user", "item", "campaign", "shop")}
    rows = {key for d in ("user", "campaign", "shop") for key in (f"row_to_{d}", f"{d}_state/row")}
    assert set(pair.inputs) == states | rows | {"position"}
    for key in rows:
        assert tf.make_ndarray(pair.defaults[key]).tolist() == [0]
        assert pair.inputs[key].dtype == tf.int64.as_datatype_enum
    for info in pair.inputs.values():
        assert info.tensor_shape.dim[0].size == -1
    assert set(stages.signatures["columnar_late"].inputs) == set(COLUMNS)


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        *((build, (1, 8)) for build in (_one_product, _rows_between_each_other, _normalised)),
        (_linear, (1, 1)),
        (_batch_product, (1, 2, 4)),
        (_folded_product, (1, 2, 4)),
    ],
)
def test_each_domains_columns_of_a_product_or_sum_are_computed_apart(
    model: Any, build: Build, shape: tuple[int, ...]
) -> None:
    states = staged(model, build).report.states
    assert [s.shape for domain in ("shop", "campaign") for s in states[domain]] == [shape] * 2


@pytest.mark.parametrize(
    ("row_to_shop", "numbers", "error"),
    [
        ([0, 1, 2, 3], [0, 1, 2], r"(?s)row_to_shop_must_be_0_to_R_minus_1.*3 is not in \[0, 3\)"),
        ([0, 1, -1, 0], [0, 1, 2], "row_to_shop_must_be_0_to_R_minus_1"),
        ([0, 1, 2, 0], [0, 1, 0], "shop_state_row_must_be_0_to_R_minus_1_of_one_request"),
    ],
)
def test_invalid_rows_and_those_of_joined_requests_are_refused(
    model: Any, row_to_shop: list[int], numbers: list[int], error: str
) -> None:
    stages = staged(model, _towers)
    columns = stages.built.rows(4)
    given = {**columns, **stages.run("item", columns)}
    for domain, count in (("user", 1), ("shop", 3), ("campaign", 1)):
        given |= stages.run(domain, {name: column[:count] for name, column in columns.items()})
    given |= {"row_to_shop": np.array(row_to_shop), "shop_state/row": np.array(numbers)}
    with pytest.raises(tf.errors.InvalidArgumentError, match=error):
        stages.run("pair", given)


def test_columns_that_are_no_numbers_stay_so(model: Any) -> None:
    stages = staged(model, _towers)
    columns = stages.built.rows(20)
    columns["size"][1, 3], columns["size"][2] = np.nan, np.inf
    stages.check(20, {"shop": 4, "campaign": 2}, columns)


def test_a_domain_that_is_only_an_id_is_left_to_the_candidates(model: Any) -> None:
    def build(c: Columns) -> Columns:
        return _score(c["age"], c["price"], _table("id", c["shop"]), _dense("b", c["budget"]))

    stages = staged(model, build, {"shop": ["shop"], "campaign": ["budget"]})
    assert stages.report.domains == ("user", "item", "campaign")
    why = "its states take 24 bytes per row, its columns 8, and save no product"
    assert stages.report.left_out == {"shop": why}
    assert set(stages.report.context_features) == {"shop", "position"}
    stages.check(12, {"campaign": 3}, stages.built.rows(12))


def test_a_list_without_a_mask_keeps_its_domains_stage_and_is_named(model: Any) -> None:
    def build(c: Columns) -> Columns:
        tags = _dense("tags", tf.reduce_mean(_table("t", c["tags"]), 1))
        return _score(c["age"], c["price"], tags, _dense("campaign", c["budget"]))

    stages = staged(model, build)
    assert stages.report.domains == ("user", "item", "campaign", "shop")
    assert stages.report.independence["columnar_shop"].own_length == ("tags",)
    stages.check(12, {"campaign": 3, "shop": 4}, stages.built.rows(12))


def test_if_the_proof_fails_only_user_and_item_have_a_stage(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from colcast.export.cut._stages_proof import StagesProof

    def compare(proof: Any, **options: Any) -> Any:
        if "shop" in proof.stages:
            raise ExportError("output 'score' is another")
        return real(proof, **options)

    real = StagesProof.compare
    monkeypatch.setattr(StagesProof, "compare", compare)
    stages = staged(model, _towers)
    assert stages.report.domains == ("user", "item")
    assert "output 'score' is another" in stages.report.left_out["shop"]
    stages.check(12, {}, stages.built.rows(12))


def test_constants_that_wait_for_an_assertion_are_in_the_stage(model: Any) -> None:
    def build(c: Columns) -> Columns:
        with tf.control_dependencies([tf.debugging.Assert(c["size"][0, 0] < 1e9, ["large"])]):
            shop = tf.identity(c["size"]) * tf.constant(np.arange(12, dtype=np.float32))
        return _score(c["age"], c["price"], _dense("shop", shop), _dense("b", c["budget"]))

    stages = staged(model, build)
    stages.check(12, {"shop": 3, "campaign": 2}, stages.built.rows(12))
