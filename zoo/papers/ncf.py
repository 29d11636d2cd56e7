"""Neural collaborative filtering: a product of embeddings, joined with a network over others.

He et al., WWW 2017 (NeuMF).
"""

from collections.abc import Sequence

from colcast.zoo.papers.layers import layers, network, probability, table
from colcast.zoo.papers.model import Columns, Feature, PaperModel

_WIDTH = 64


def _network(features: Sequence[Feature], columns: Columns, scale: float) -> Columns:
    user, item = features
    product = layers.Multiply()(
        [table(side, _WIDTH, scale)(columns[side.name]) for side in (user, item)]
    )
    both = layers.Concatenate()(
        [table(side, _WIDTH, scale)(columns[side.name]) for side in (user, item)]
    )
    deep = network([256, 256, 128, 64])(both)
    joined = layers.Concatenate()([product, deep])
    return {"score": probability(network([64, 1], last=None)(joined))}


NCF = PaperModel(
    name="ncf",
    features=(Feature("user_id", ids=140_000), Feature("item_id", ids=28_000)),
    network=_network,
)
