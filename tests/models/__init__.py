"""The tests' models by name.

`RANKING` has the ranking models, each with the verdict on its rows that is expected from the
export. `_interacting` has list-wise models and models whose scores depend on how far lists are
padded; `_keras` has models of layers, `_public` models of public shapes, some with NaN inside;
`_hostile` has lists with NaN, infinities and empty lists; `_elsewhere` has the models of the
exporter's tests and of the zoo. `_served` has small models that several tests serve. A model that
only one test needs may stay beside that test.
"""

from pathlib import Path
from typing import Any

from ._elsewhere import MODELS as _ELSEWHERE
from ._hostile import MODELS as _HOSTILE
from ._interacting import MODELS as _INTERACTING
from ._keras import MODELS as _KERAS
from ._model import Expected, RankingModel
from ._public import MODELS as _PUBLIC
from ._served import MODELS as _SERVED

__all__ = ["RANKING", "Expected", "RankingModel", "build"]

RANKING: dict[str, RankingModel] = {
    model.name: model
    for models in (_INTERACTING, _KERAS, _HOSTILE, _PUBLIC, _ELSEWHERE)
    for model in models
}


def build(name: str, folder: Path, **options: Any) -> None:
    """Saves a model of `_served`; `options` go to the function that saves it."""
    _SERVED[name](folder, **options)
