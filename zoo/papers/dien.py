"""Deep interest evolution network: a recurrent network over behaviours, gated by the candidate.

Zhou et al., AAAI 2019. The behaviours, the user and the context are user features, so the first
recurrent layer is user-only; the second one depends on the candidate.
"""

from collections.abc import Sequence
from typing import Any

from colcast.zoo.papers.layers import click_probability, embed, layers, network, ops, table
from colcast.zoo.papers.model import Columns, Feature, PaperModel

_WIDTH = 32
_STATE = 64
_BEHAVIOURS = 40


def _attention(states: Any, item: Any, present: Any) -> Any:
    """How much each state concerns the item: [rows, steps], summing to 1, 0 on padding."""
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


def _network(features: Sequence[Feature], columns: Columns, scale: float) -> Columns:
    user, history, item, context = features
    ids = columns[history.name]
    present = ops.not_equal(ids, 0)
    behaviours = table(history, _WIDTH, scale)(ids)
    states = layers.GRU(_STATE, return_sequences=True, unroll=True)(behaviours, mask=present)
    of_item = embed(item, columns, _WIDTH, scale)
    joined = layers.Concatenate()(
        [
            _gated_by_attention(states, _attention(states, of_item, present)),
            embed(user, columns, _WIDTH, scale),
            of_item,
            embed(context, columns, _WIDTH, scale),
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
    network=_network,
)
