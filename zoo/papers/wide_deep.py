"""Wide & Deep, and its multi-task form.

Cheng et al., DLRS 2016; Zhao et al., RecSys 2019. Two thirds of tables and numbers are user
features.
"""

from collections.abc import Sequence
from typing import Any

from colcast.zoo.papers.layers import embed, layers, network, ops, probability
from colcast.zoo.papers.model import Columns, Feature, PaperModel

_WIDTH = 32
_NUMBERS = 512
TASKS = ("click", "like", "share", "watch")


def _features(tables: Sequence[int]) -> tuple[Feature, ...]:
    of_user, numbers_of_user = len(tables) * 2 // 3, _NUMBERS * 2 // 3
    return (
        Feature("user_numbers", values=numbers_of_user),
        *(Feature(f"user_{n:02}", ids=ids) for n, ids in enumerate(tables[:of_user])),
        Feature("item_numbers", values=_NUMBERS - numbers_of_user),
        *(Feature(f"item_{n:02}", ids=ids) for n, ids in enumerate(tables[of_user:])),
    )


def _deep_input(features: Sequence[Feature], columns: Columns, scale: float) -> Any:
    return layers.Concatenate()(
        [
            embed(feature, columns, _WIDTH, scale) if feature.ids else columns[feature.name]
            for feature in features
        ]
    )


def _wide_deep(features: Sequence[Feature], columns: Columns, scale: float) -> Columns:
    wide = [embed(feature, columns, 1, scale) for feature in features if feature.ids]
    deep = network([1024, 512, 256, 1], last=None)(_deep_input(features, columns, scale))
    linear = ops.sum(layers.Concatenate()(wide), axis=1, keepdims=True)
    return {"score": probability(layers.Add()([deep, linear]))}


def _multi_task(features: Sequence[Feature], columns: Columns, scale: float) -> Columns:
    shared = network([1024, 512])(_deep_input(features, columns, scale))
    return {task: probability(network([512, 256, 128, 1], last=None)(shared)) for task in TASKS}


WIDE_DEEP = PaperModel(
    name="wide_deep",
    features=_features([1_000_000] * 27),
    network=_wide_deep,
)

MULTI_TASK_WIDE_DEEP = PaperModel(
    name="multi_task_wide_deep",
    features=_features([5_000_000, *[500_000] * 41, 5_000_000]),
    network=_multi_task,
)
