"""Deep interest network: every past behaviour is weighed against the candidate.

Zhou et al., KDD 2018. The behaviours, the user and the context are user features.
"""

from collections.abc import Sequence
from typing import Any

from colcast.zoo.papers.layers import click_probability, embed, layers, network, ops, table
from colcast.zoo.papers.model import Columns, Feature, PaperModel

_WIDTH = 32


def _attended(behaviours: Any, item: Any, present: Any) -> Any:
    """The sum of the behaviours, each weighted by a unit that sees it, the item and their product.

    The weights do not sum to one: the strength of an interest counts, as in the paper.

    Args:
      behaviours: [rows, L, width].
      item: [rows, width].
      present: [rows, L, 1], 0 for padding.
    """
    item = ops.zeros_like(behaviours) + ops.expand_dims(item, 1)
    unit = layers.Dense(1, activation="sigmoid")
    weights = unit(ops.concatenate([behaviours, item, behaviours * item], axis=2))
    return ops.sum(behaviours * weights * present, axis=1)


def _network(features: Sequence[Feature], columns: Columns, scale: float) -> Columns:
    user, history, item, context = features
    ids = columns[history.name]
    present = ops.expand_dims(ops.cast(ops.not_equal(ids, 0), "float32"), 2)
    behaviours = table(history, _WIDTH, scale)(ids)
    of_item = embed(item, columns, _WIDTH, scale)
    joined = layers.Concatenate()(
        [
            embed(user, columns, _WIDTH, scale),
            _attended(behaviours, of_item, present),
            of_item,
            embed(context, columns, _WIDTH, scale),
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
    network=_network,
)
