"""The eight papers' models have their published sizes, and do what their papers describe."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.zoo.examples import serialize_request
from colcast.zoo.papers import PAPERS, ensure
from colcast.zoo.papers.saved import built, examples_scorer

TINY = 0.001


@cache
def network_of(name: str) -> Any:
    return built(PAPERS[name], TINY)


def score(name: str, columns: dict[str, Any]) -> np.ndarray:
    (output,) = network_of(name)({n: tf.constant(v) for n, v in columns.items()}).values()
    return np.array(output)


def weight_shapes(name: str) -> set[tuple[int, ...]]:
    return {tuple(weight.shape) for weight in network_of(name).weights}


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("ncf", {(128, 256), (256, 256), (256, 128), (128, 64), (64, 1)}),
        ("wide_deep", {(1376, 1024), (1024, 512), (512, 256), (256, 1)}),
        ("multi_task_wide_deep", {(1888, 1024), (1024, 512), (512, 256), (256, 128), (128, 1)}),
        ("dlrm_rmc1", {(128, 64), (64, 32), (288, 256), (256, 64), (64, 1)}),
        ("dlrm_rmc2", {(256, 128), (128, 64), (2112, 128), (64, 1)}),
        ("dlrm_rmc3", {(2560, 1024), (1024, 256), (256, 32), (352, 512), (512, 256), (256, 1)}),
        ("din", {(96, 1), (128, 200), (200, 80), (80, 2)}),
        ("dien", {(32, 3 * 64), (64, 3 * 64), (128, 2 * 64), (160, 200), (200, 80), (80, 2)}),
    ],
)
def test_networks_have_their_published_sizes(name: str, kernels: set[tuple[int, int]]):
    assert kernels <= weight_shapes(name)


@pytest.mark.parametrize("name", PAPERS)
def test_requests_repeat_with_the_seed_and_hold_every_feature(name: str):
    paper = PAPERS[name]
    user, items = paper.request(3, seed=1, scale=TINY)
    assert {**user, **items[0]}.keys() == {feature.name for feature in paper.features}
    assert (user, items) == paper.request(3, seed=1, scale=TINY)
    assert (user, items) != paper.request(3, seed=2, scale=TINY)


def din(behaviours: list[int], items: list[int]) -> np.ndarray:
    rows = len(items)
    return score(
        "din",
        {
            "user_ids": [[1, 2, 3]] * rows,
            "user_behaviours": [behaviours] * rows,
            "item_ids": [[item] * 3 for item in items],
            "user_context": [[4, 5, 6]] * rows,
        },
    )


def test_din_ignores_padding_and_the_order_of_behaviours():
    np.testing.assert_allclose(din([5, 9, 7], [1, 2]), din([7, 5, 9, 0, 0], [1, 2]), rtol=1e-5)


def test_din_weighs_a_behaviour_differently_for_each_candidate():
    effect = din([5, 9, 7], [1, 2]) - din([5, 9], [1, 2])
    assert abs(effect[0] - effect[1]) > 1e-4


def dien(behaviours: list[int], items: list[int]) -> np.ndarray:
    rows = len(items)
    return score(
        "dien",
        {
            "user_id": [1] * rows,
            "user_behaviours": [behaviours + [0] * (40 - len(behaviours))] * rows,
            "item_id": items,
            "user_context": [2] * rows,
        },
    )


def test_dien_sees_the_order_of_behaviours():
    assert np.abs(dien([5, 9, 7], [1, 2]) - dien([7, 9, 5], [1, 2])).max() > 1e-5


@pytest.mark.parametrize("name", ["ncf", "din"])
def test_the_saved_model_scores_examples_as_the_network_does(name: str, tmp_path: Any):
    paper = PAPERS[name]
    base_path = ensure(paper, TINY, tmp_path)
    examples = serialize_request(*paper.request(4, seed=1, scale=TINY))
    signature = tf.saved_model.load(str(base_path / "1")).signatures["serving_default"]
    saved = signature(examples=tf.constant(examples))
    scored = examples_scorer(paper, network_of(name))(tf.constant(examples))
    for output in scored:
        np.testing.assert_allclose(saved[output], scored[output], rtol=1e-5)
        assert np.std(saved[output]) > 0.01
