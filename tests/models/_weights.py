"""Building blocks of small models."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import tensorflow as tf

from ._model import Expected, RankingModel
from .saving import save_parser

Features = Mapping[str, Any]
# Makes layers once; returns the function that scores with them.
Make = Callable[[], Callable[[Features], Any]]


def keras_model(make: Make, spec: Features, why: str, **more: Any) -> RankingModel:
    """A model with independent rows; `make` returns a function from parsed features to scores."""

    def save(folder: Path) -> None:
        tf.keras.utils.set_random_seed(3)
        score = make()
        module = tf.Module()
        module.layers = list(_closed_over(score))
        save_parser(folder, module, spec, lambda features: {"score": score(features)})

    expected = more.pop("expected", Expected.INDEPENDENT)
    return RankingModel(make.__name__, save, spec, expected, why, **more)


def _closed_over(function: Any) -> Iterator[Any]:
    """The variables that a function, and the functions it calls, close over."""
    for cell in function.__closure__ or ():
        if isinstance(cell.cell_contents, FunctionType):
            yield from _closed_over(cell.cell_contents)
        else:
            yield cell.cell_contents


class Weights(tf.Module):
    """A model's variables, which it requests in the same order whenever it is traced."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Any] = []
        self._asked = 0

    def again(self) -> "Weights":
        """Restarts at the first variable, for another trace."""
        self._asked = 0
        return self

    def __call__(self, *shape: int) -> Any:
        """The next variable, made on first use."""
        if self._asked == len(self.made):
            with tf.init_scope():
                self.made.append(tf.Variable(tf.random.normal(shape, stddev=0.4)))
        self._asked += 1
        return self.made[self._asked - 1]

    def table(self, ids: Any, width: int = 8) -> Any:
        """Embeds ids or words."""
        if ids.dtype == tf.string:
            ids = tf.strings.to_hash_bucket_fast(ids, 64)
        return tf.gather(self(64, width), ids % 64)

    def dense(self, x: Any, units: int = 16, activation: Any = tf.nn.relu) -> Any:
        product = tf.matmul(x, self(x.shape[-1], units))
        return activation(tf.nn.bias_add(product, self(units)))

    def score(self, *columns: Any) -> Any:
        return self.dense(self.dense(tf.concat(columns, 1)), 1, tf.identity)[:, 0]


Score = Callable[[Features, Weights], Any]


def dense(f: Features, name: str, fill: Any = None) -> Any:
    return tf.sparse.to_dense(f[name], fill)


def mask(f: Features, name: str) -> Any:
    """1 where a list has a value."""
    return tf.cast(dense(f, name, -1) >= 0, tf.float32)


def _save(spec: Any, score: Score, folder: Path) -> None:
    tf.keras.utils.set_random_seed(3)
    weights = Weights()
    save_parser(folder, weights, spec, lambda f: {"score": score(f, weights.again())})


def written_model(name: str, score: Score, spec: Any, why: str, **more: Any) -> RankingModel:
    expected = more.pop("expected", Expected.INDEPENDENT)
    return RankingModel(name, partial(_save, spec, score), spec, expected, why, **more)
