"""Models of Keras layers, whose scores depend on their own row alone."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

import tensorflow as tf

from ._model import Expected, RankingModel
from .saving import save_parser

Features = Mapping[str, Any]
Make = Callable[[], Callable[[Features], Any]]  # makes layers once, and what scores with them


def keras_model(make: Make, spec: Features, why: str, **more: Any) -> RankingModel:
    """An independent model: `make` returns the function from parsed features to scores."""

    def save(folder: Path) -> None:
        tf.keras.utils.set_random_seed(3)
        score = make()
        module = tf.Module()
        module.layers = list(_closed_over(score))
        save_parser(folder, module, spec, lambda features: {"score": score(features)})

    return RankingModel(make.__name__, save, spec, Expected.INDEPENDENT, why, **more)


def _closed_over(function: Any) -> Iterator[Any]:
    """What a function, and the functions it calls, read of the functions around them."""
    for cell in function.__closure__ or ():
        if isinstance(cell.cell_contents, FunctionType):
            yield from _closed_over(cell.cell_contents)
        else:
            yield cell.cell_contents
