"""The tests' models by name.

`REGISTRY` has all of them. `RANKING` has the ranking models, each with the verdict on its rows that
is expected from the export. `_interacting` has list-wise models, `_lengths` models whose result
depends on how far lists are padded. The models of `_towers`, `_histories`, `_preprocessing`,
`_papers` and, with NaN inside, `_not_finite` score each candidate by itself. `_hostile` has lists
of every kind with NaN, infinities and empty lists, `_public` public shapes. `_elsewhere` has the
models of the exporter's tests and of the zoo. `SERVED` has small models that several tests serve. A
model that only one test needs may stay beside that test.
"""

from pathlib import Path
from typing import Any

from ._elsewhere import MODELS as _ELSEWHERE
from ._histories import MODELS as _HISTORIES
from ._hostile import MODELS as _HOSTILE
from ._interacting import MODELS as _INTERACTING
from ._lengths import MODELS as _LENGTHS
from ._model import Expected, Model, RankingModel, ServedModel
from ._not_finite import MODELS as _NOT_FINITE
from ._papers import MODELS as _PAPERS
from ._preprocessing import MODELS as _PREPROCESSING
from ._public import MODELS as _PUBLIC
from ._served import MODELS as _SERVED
from ._towers import MODELS as _TOWERS

__all__ = ["RANKING", "REGISTRY", "SERVED", "Expected", "RankingModel", "ServedModel", "build"]

RANKING: dict[str, RankingModel] = {
    model.name: model
    for models in (
        *(_INTERACTING, _LENGTHS, _TOWERS, _HISTORIES, _PREPROCESSING),
        *(_NOT_FINITE, _HOSTILE, _PUBLIC, _PAPERS, _ELSEWHERE),
    )
    for model in models
}
SERVED: dict[str, ServedModel] = {model.name: model for model in _SERVED}
REGISTRY: dict[str, Model] = {**RANKING, **SERVED}


def build(name: str, folder: Path, **options: Any) -> None:
    """Saves a model of the registry; `options` go to the model's `build`."""
    REGISTRY[name].build(folder, **options)
