"""Small models that several tests serve, each for one purpose."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from . import impure, movies
from .saving import save_version

TOTALS_WIDTH = 1000  # `totals` has this many values per row
_Columns = Mapping[str, tf.TensorSpec]
Build = Callable[..., None]


def _columns(**inputs: tuple[tf.DType, list[int | None]]) -> _Columns:
    return {name: tf.TensorSpec(shape, dtype, name) for name, (dtype, shape) in inputs.items()}


def _functions(**signatures: tuple[Callable[..., Any], _Columns]) -> Build:
    """A model whose signatures are functions of columns; build options go to every function."""

    def build(folder: Path, **options: Any) -> None:
        made = {
            name: tf.function(partial(function, **options)).get_concrete_function(**columns)
            for name, (function, columns) in signatures.items()
        }
        save_version(folder, tf.Module(), made)

    return build


def _zeros(count: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"zeros": tf.zeros([count])}


def _weighted(x: tf.Tensor, weight: float = 1.0) -> dict[str, tf.Tensor]:
    return {"score": weight * x}


def _gated(path: tf.Tensor, x: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"score": x + impure.pass_gate(path)}


def _every_family(
    age: tf.Tensor, pair: tf.Tensor, title: tf.Tensor, seen: tf.Tensor
) -> dict[str, tf.Tensor]:
    score = tf.cast(age, tf.float32) + tf.reduce_sum(pair, axis=1) + tf.cast(seen, tf.float32)
    return {"score": score, "name": tf.strings.join([title, "!"])}


def _total(x: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"total": tf.strings.length(x[:, 0]) if x.dtype == tf.string else tf.reduce_sum(x, 1)}


_FLOATS, _STRINGS = (tf.float32, [None]), (tf.string, [None])
_X = _columns(x=_FLOATS)
_RANKED = _columns(user=_FLOATS, item=_FLOATS, user_name=_STRINGS, item_name=_STRINGS)


def _build_ranker(folder: Path, weight: float = 1.0, waits: bool = False) -> None:
    """With `waits`, a signature opens a pipe for writing, so it waits for a reader."""
    module = tf.Module()
    module.weight = tf.Variable(weight)

    def score(user: Any, item: Any, user_name: Any, item_name: Any) -> dict[str, Any]:
        # Pack refuses one row beside several, so the server must repeat it.
        names = tf.stack([tf.strings.regex_replace(user_name, "^(.).*$", r"\1"), item_name], 1)
        parts = tf.stack([100 * module.weight * user, item], 1)
        tag = tf.strings.reduce_join(names, 1, separator=":")
        return {"score": tf.reduce_sum(parts, 1), "tag": tag}

    def wait(path: Any) -> dict[str, Any]:
        with tf.control_dependencies([tf.io.write_file(path, "")]):
            return {"done": tf.constant(1.0)}

    signatures = {"serving_default": tf.function(score).get_concrete_function(**_RANKED)}
    if waits:
        signatures["wait"] = tf.function(wait).get_concrete_function(tf.TensorSpec([], tf.string))
    save_version(folder, module, signatures)


MODELS: dict[str, Build] = {
    # score = 100 * weight * user + item, weight a variable; tag joins the two names
    "ranker": _build_ranker,
    # score = weight * x
    "weighted": _functions(serving_default=(_weighted, _X)),
    # an answer as long as one likes, for a request of a few bytes
    "zeros": _functions(serving_default=(_zeros, _columns(count=(tf.int64, [])))),
    # an input of each family of dtypes; the outputs tell how many rows arrived
    "every_family": _functions(
        serving_default=(
            _every_family,
            _columns(age=(tf.int64, [None]), pair=(tf.float32, [None, 2]), title=_STRINGS)
            | _columns(seen=(tf.bool, [None])),
        ),
    ),
    # rows of each family added up: answers are much smaller than requests
    "totals": _functions(
        floats=(_total, _columns(x=(tf.float32, [None, TOTALS_WIDTH]))),
        integers=(_total, _columns(x=(tf.int64, [None, TOTALS_WIDTH]))),
        texts=(_total, _columns(x=(tf.string, [None, TOTALS_WIDTH]))),
    ),
    # x, once its gate is open: rows that nobody knows to be independent
    "gated": _functions(serving_default=(_gated, _columns(path=(tf.string, []), x=_FLOATS))),
    # one formula from tf.Examples, columns, and columns whose user has one row
    "movies": movies.save,
}
