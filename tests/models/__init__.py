"""Ranking models of all kinds, and what is known of each: whether its rows depend on each other.

`REGISTRY` has them by name. `_interacting` are list-wise models, `_lengths` those whose result
depends on how far lists are padded, `_towers`, `_histories` and `_preprocessing` those that score a
candidate by itself, `_elsewhere` refers to models that other tests and the zoo have.
"""

from ._elsewhere import MODELS as _ELSEWHERE
from ._histories import MODELS as _HISTORIES
from ._interacting import MODELS as _INTERACTING
from ._lengths import MODELS as _LENGTHS
from ._model import Expected, RankingModel
from ._preprocessing import MODELS as _PREPROCESSING
from ._towers import MODELS as _TOWERS

__all__ = ["REGISTRY", "Expected", "RankingModel"]

REGISTRY: dict[str, RankingModel] = {
    model.name: model
    for models in (_INTERACTING, _LENGTHS, _TOWERS, _HISTORIES, _PREPROCESSING, _ELSEWHERE)
    for model in models
}
