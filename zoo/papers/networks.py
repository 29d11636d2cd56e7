"""The networks of the eight models."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from colcast.zoo.papers.model import (
    Columns,
    Feature,
    PaperModel,
    click_probability,
    embed,
    layers,
    network,
    ops,
    probability,
    table,
)

# NeuMF, neural collaborative filtering: the product of two embeddings, and a network over two
# others. He et al., WWW 2017.
_NCF_WIDTH = 64


def _ncf_network(features: Sequence[Feature], columns: Columns, scale: float) -> Columns:
    user, item = features
    product = layers.Multiply()(
        [table(side, _NCF_WIDTH, scale)(columns[side.name]) for side in (user, item)]
    )
    both = layers.Concatenate()(
        [table(side, _NCF_WIDTH, scale)(columns[side.name]) for side in (user, item)]
    )
    deep = network([256, 256, 128, 64])(both)
    joined = layers.Concatenate()([product, deep])
    return {"score": probability(network([64, 1], last=None)(joined))}


NCF = PaperModel(
    name="ncf",
    features=(Feature("user_id", ids=140_000), Feature("item_id", ids=28_000)),
    network=_ncf_network,
)


# Wide & Deep, and its multi-task form. Cheng et al., DLRS 2016; Zhao et al., RecSys 2019.
# Two thirds of the tables and numbers are user features.
_WIDE_WIDTH = 32
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
            embed(feature, columns, _WIDE_WIDTH, scale) if feature.ids else columns[feature.name]
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


# DLRM in the three sizes of Facebook's production classes RMC1, RMC2 and RMC3. Naumov et al., 2019;
# Gupta et al., HPCA 2020. Half of the tables and all numbers are user features.
def _dlrm_network(
    features: Sequence[Feature],
    columns: Columns,
    scale: float,
    *,
    bottom: Sequence[int],
    top: Sequence[int],
) -> Columns:
    numbers, *tables = features
    parts = [network(bottom)(columns[numbers.name])]
    parts += [embed(table, columns, bottom[-1], scale) for table in tables]
    return {"score": probability(network(top, last=None)(layers.Concatenate()(parts)))}


def _dlrm(
    name: str,
    tables: int,
    ids: int,
    lookups: int,
    bottom: Sequence[int],
    top: Sequence[int],
) -> PaperModel:
    """A DLRM: `bottom[0]` is the number of numeric features, `bottom[-1]` the embeddings' width."""
    sides = ["user" if n < tables // 2 else "item" for n in range(tables)]
    return PaperModel(
        name=name,
        features=(
            Feature("user_numbers", values=bottom[0]),
            *(Feature(f"{side}_{n:02}", ids, lookups) for n, side in enumerate(sides)),
        ),
        network=partial(_dlrm_network, bottom=bottom[1:], top=top),
    )


RMC1 = _dlrm("dlrm_rmc1", 8, 4_000_000, 80, [128, 64, 32], [256, 64, 1])
RMC2 = _dlrm("dlrm_rmc2", 32, 500_000, 120, [256, 128, 64], [128, 64, 1])
RMC3 = _dlrm("dlrm_rmc3", 10, 2_000_000, 20, [2560, 1024, 256, 32], [512, 256, 1])


# Deep interest network: the candidate weights past behaviours. Zhou et al., KDD 2018.
# The behaviours, the user and the context are user features.
_DIN_WIDTH = 32


def _attended(behaviours: Any, item: Any, present: Any) -> Any:
    """The sum of the behaviours, weighted by a network over behaviour, item and their product.

    As in the paper, the weights need not sum to one, so that the strength of an interest counts.

    Args:
      behaviours: [rows, L, width].
      item: [rows, width].
      present: [rows, L, 1], 0 for padding.
    """
    item = ops.zeros_like(behaviours) + ops.expand_dims(item, 1)
    unit = layers.Dense(1, activation="sigmoid")
    weights = unit(ops.concatenate([behaviours, item, behaviours * item], axis=2))
    return ops.sum(behaviours * weights * present, axis=1)


def _din_network(features: Sequence[Feature], columns: Columns, scale: float) -> Columns:
    user, history, item, context = features
    ids = columns[history.name]
    present = ops.expand_dims(ops.cast(ops.not_equal(ids, 0), "float32"), 2)
    behaviours = table(history, _DIN_WIDTH, scale)(ids)
    of_item = embed(item, columns, _DIN_WIDTH, scale)
    joined = layers.Concatenate()(
        [
            embed(user, columns, _DIN_WIDTH, scale),
            _attended(behaviours, of_item, present),
            of_item,
            embed(context, columns, _DIN_WIDTH, scale),
        ]
    )
    return {"score": click_probability(network([200, 80, 2], last=None)(joined))}


DIN = PaperModel(
    name="din",
    features=(
        Feature("user_ids", ids=1_000_000, values=3),
        Feature("user_behaviours", ids=100_000, values=250, history=True),
        Feature("item_ids", ids=10_000_000, values=3),
        Feature("user_context", ids=10_000_000, values=3),
    ),
    network=_din_network,
)


# Deep interest evolution network: a recurrent network over behaviours, gated by the candidate. Zhou
# et al., AAAI 2019. The behaviours, the user and the context are user features, so the first
# recurrent layer is user-only; the second one depends on the candidate.
_DIEN_WIDTH = 32
_STATE = 64
_BEHAVIOURS = 40


def _attention(states: Any, item: Any, present: Any) -> Any:
    """The relevance of each state to the item, [rows, steps]; sums to 1, and is 0 on padding."""
    fit = ops.einsum("rsk,rk->rs", states, layers.Dense(_STATE, use_bias=False)(item))
    return ops.softmax(ops.where(present, fit / _STATE**0.5, -1e9), axis=1)


def _gated_by_attention(states: Any, attention: Any) -> Any:
    """The last state of a GRU whose update gate is multiplied by the attention (AUGRU).

    Args:
      states: [rows, steps, state].
      attention: [rows, steps].
    """
    gates = layers.Dense(2 * _STATE, activation="sigmoid")
    candidate = layers.Dense(_STATE, activation="tanh")
    state = ops.zeros_like(states[:, 0])
    for step in range(_BEHAVIOURS):
        seen = states[:, step]
        update, reset = ops.split(gates(ops.concatenate([seen, state], axis=1)), 2, axis=1)
        proposed = candidate(ops.concatenate([seen, reset * state], axis=1))
        update = attention[:, step : step + 1] * update
        state = (1.0 - update) * state + update * proposed
    return state


def _dien_network(features: Sequence[Feature], columns: Columns, scale: float) -> Columns:
    user, history, item, context = features
    ids = columns[history.name]
    present = ops.not_equal(ids, 0)
    behaviours = table(history, _DIEN_WIDTH, scale)(ids)
    states = layers.GRU(_STATE, return_sequences=True, unroll=True)(behaviours, mask=present)
    of_item = embed(item, columns, _DIEN_WIDTH, scale)
    joined = layers.Concatenate()(
        [
            _gated_by_attention(states, _attention(states, of_item, present)),
            embed(user, columns, _DIEN_WIDTH, scale),
            of_item,
            embed(context, columns, _DIEN_WIDTH, scale),
        ]
    )
    return {"score": click_probability(network([200, 80, 2], last=None)(joined))}


DIEN = PaperModel(
    name="dien",
    features=(
        Feature("user_id", ids=5_000_000),
        Feature("user_behaviours", ids=500_000, values=_BEHAVIOURS),
        Feature("item_id", ids=5_000_000),
        Feature("user_context", ids=500_000),
    ),
    network=_dien_network,
)

PAPERS = {
    model.name: model
    for model in (NCF, WIDE_DEEP, MULTI_TASK_WIDE_DEEP, RMC1, RMC2, RMC3, DIN, DIEN)
}
