"""DLRM in the three sizes of Facebook's production classes RMC1, RMC2 and RMC3.

Naumov et al., 2019; Gupta et al., HPCA 2020. Half of the tables and all numbers are user features.
"""

from collections.abc import Sequence
from functools import partial

from colcast.zoo.papers.layers import embed, layers, network, probability
from colcast.zoo.papers.model import Columns, Feature, PaperModel


def _network(
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
    """`bottom` begins with the count of plain numbers and ends with the width of a table."""
    sides = ["user" if n < tables // 2 else "item" for n in range(tables)]
    return PaperModel(
        name=name,
        features=(
            Feature("user_numbers", values=bottom[0]),
            *(Feature(f"{side}_{n:02}", ids, lookups) for n, side in enumerate(sides)),
        ),
        network=partial(_network, bottom=bottom[1:], top=top),
    )


RMC1 = _dlrm("dlrm_rmc1", 8, 4_000_000, 80, [128, 64, 32], [256, 64, 1])
RMC2 = _dlrm("dlrm_rmc2", 32, 500_000, 120, [256, 128, 64], [128, 64, 1])
RMC3 = _dlrm("dlrm_rmc3", 10, 2_000_000, 20, [2560, 1024, 256, 32], [512, 256, 1])
