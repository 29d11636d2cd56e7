"""Small models that several tests serve, each for one purpose."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from . import dependent_model, impure, movies, shops, stages_model, tf1
from ._model import ServedModel
from .saving import save_version

TOTALS_WIDTH = 1000  # `totals` has this many values per row
_Columns = Mapping[str, tf.TensorSpec]


def _columns(**inputs: tuple[tf.DType, list[int | None]]) -> _Columns:
    return {name: tf.TensorSpec(shape, dtype, name) for name, (dtype, shape) in inputs.items()}


def _functions(
    name: str, shows: str, **signatures: tuple[Callable[..., Any], _Columns]
) -> ServedModel:
    """A model whose signatures are functions of columns; build options go to every function."""

    def build(folder: Path, **options: Any) -> None:
        made = {
            name: tf.function(partial(function, **options)).get_concrete_function(**columns)
            for name, (function, columns) in signatures.items()
        }
        save_version(folder, tf.Module(), made)

    inputs = dict.fromkeys(one for _, columns in signatures.values() for one in columns)
    return ServedModel(name, build, tuple(inputs), shows)


def _zeros(count: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"zeros": tf.zeros([count])}


def _weighted(x: tf.Tensor, weight: float = 1.0) -> dict[str, tf.Tensor]:
    return {"score": weight * x}


def _gated(path: tf.Tensor, x: tf.Tensor, waits: bool = True) -> dict[str, tf.Tensor]:
    passed = impure.pass_gate(path) if waits else 0 * tf.cast(tf.strings.length(path), tf.float32)
    return {"score": x + passed}


def _every_family(
    age: tf.Tensor, pair: tf.Tensor, title: tf.Tensor, seen: tf.Tensor
) -> dict[str, tf.Tensor]:
    score = tf.cast(age, tf.float32) + tf.reduce_sum(pair, axis=1) + tf.cast(seen, tf.float32)
    return {"score": score, "name": tf.strings.join([title, "!"])}


def _total(x: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"total": tf.strings.length(x[:, 0]) if x.dtype == tf.string else tf.reduce_sum(x, 1)}


def _slow(x: tf.Tensor, milliseconds: int = 1) -> dict[str, tf.Tensor]:
    shapes = [[None]]
    rows = tf.raw_ops.TensorDataset(components=[x], output_shapes=shapes)
    slept = tf.raw_ops.ExperimentalSleepDataset(
        input_dataset=rows,
        sleep_microseconds=milliseconds * 500,  # the run requests two elements
        output_types=[tf.float32],
        output_shapes=shapes,
    )
    (same,) = tf.raw_ops.DatasetToSingleElement(
        dataset=slept, output_types=[tf.float32], output_shapes=shapes
    )
    return {"score": same}


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


MODELS = [
    ServedModel(
        "ranker",
        _build_ranker,
        tuple(_RANKED),
        "score = 100 * weight * user + item, weight a variable; tag joins the two names",
        {"user": ("user", "user_name")},
    ),
    _functions("weighted", "score = weight * x", serving_default=(_weighted, _X)),
    _functions(
        "zeros",
        "an answer as long as one likes, for a request of a few bytes",
        serving_default=(_zeros, _columns(count=(tf.int64, []))),
    ),
    _functions(
        "every_family",
        "an input of each family of dtypes; the outputs tell how many rows arrived",
        serving_default=(
            _every_family,
            _columns(age=(tf.int64, [None]), pair=(tf.float32, [None, 2]), title=_STRINGS)
            | _columns(seen=(tf.bool, [None])),
        ),
    ),
    _functions(
        "totals",
        "rows of each family added up: answers are much smaller than requests",
        **{
            name: (_total, _columns(x=(dtype, [None, TOTALS_WIDTH])))
            for name, dtype in {
                "floats": tf.float32,
                "integers": tf.int64,
                "texts": tf.string,
            }.items()
        },
    ),
    _functions(
        "slow",
        "x after so many milliseconds, without a processor",
        serving_default=(_slow, _X),
        columnar=(_slow, _X),
    ),
    _functions(
        "gated",
        "x, once its gate is open if it waits: rows that nobody knows to be independent",
        serving_default=(_gated, _columns(path=(tf.string, []), x=_FLOATS)),
    ),
    ServedModel(
        "parameters",
        tf1.save_parameters,
        tf1.PARAMETERS,
        "parameters of unknown rank as TensorFlow 1 has them, in conditions and in products",
    ),
    ServedModel(
        "unsaved",
        tf1.save_unsaved,
        ("x",),
        "score = 3 * x; its variable is in no checkpoint, or not in the one there is",
    ),
    ServedModel(
        "stages",
        stages_model.save,
        stages_model.COLUMNS,
        "stages by hand, of lists, strings and a feature of the candidate",
        stages_model.DOMAINS,
    ),
    ServedModel(
        "dependent",
        dependent_model.save,
        ("user", "item", "history", "history/length", "seen", "seen/length"),
        "rows that depend on each other, in each signature in another way",
        {"user": ("user",)},
    ),
    ServedModel(
        "movies",
        movies.save,
        ("examples", *movies.COLUMNS),
        "one formula from tf.Examples, columns, and columns whose user has one row",
        {"user": ("age", "city", "history")},
    ),
    ServedModel(
        "shops",
        shops.save,
        ("examples",),
        "tf.Examples with features and a layer for each of four domains",
        {domain: (f"{domain}_*",) for domain in shops.DOMAINS},
    ),
]
