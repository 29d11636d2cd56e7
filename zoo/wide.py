"""`wide`: a ranking model with hundreds of scalar features, like those of large teams.

The weights are random but fixed, because only speed matters. Features are int64, float and string
in turn; each integer or string feature is hashed into its own embedding table, and everything is
concatenated and passed through one network.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.zoo.cache import cached

Row = dict[str, int | float | str]

_DTYPES = (tf.int64, tf.float32, tf.string)


@dataclass(frozen=True)
class Wide:
    """The sizes of the model; `name` distinguishes its saved copies."""

    name: str = "wide"
    user_features: int = 150
    item_features: int = 60
    embedding_width: int = 16
    buckets: int = 1000
    hidden: tuple[int, ...] = (256, 64)
    seed: int = 20

    @property
    def dtypes(self) -> dict[str, Any]:
        """Feature name to dtype: user_000, user_001, ..., item_000, ..."""
        sides = (("user", self.user_features), ("item", self.item_features))
        return {f"{side}_{n:03}": _DTYPES[n % 3] for side, count in sides for n in range(count)}


WIDE = Wide()
USER_HEAVY = replace(WIDE, name="user_heavy", user_features=300, item_features=20)


class WideModule(tf.Module):  # type: ignore[misc]
    """The model with its tf.Example signatures: for Predict, and for Regress."""

    def __init__(self, sizes: Wide) -> None:
        """Draws the weights from `sizes.seed`."""
        super().__init__()
        self._sizes = sizes
        self._dtypes = sizes.dtypes
        random = np.random.default_rng(sizes.seed)

        def variable(rows: int, columns: int, scale: float) -> Any:
            return tf.Variable(random.normal(0, scale, (rows, columns)).astype(np.float32))

        hashed = [name for name, dtype in self._dtypes.items() if dtype != tf.float32]
        width = len(self._dtypes) + len(hashed) * (sizes.embedding_width - 1)
        self.tables = {name: variable(sizes.buckets, sizes.embedding_width, 0.5) for name in hashed}
        self.kernels, self.biases = [], []
        for units in (*sizes.hidden, 1):
            self.kernels.append(variable(width, units, (2 / width) ** 0.5))
            self.biases.append(tf.Variable(tf.zeros(units)))
            width = units

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])  # type: ignore[untyped-decorator]
    def serve(self, examples: Any) -> dict[str, Any]:
        """Scores serialized tf.Examples, [rows]; every feature may be missing."""
        defaults = {tf.int64: 0, tf.float32: 0.0, tf.string: ""}
        spec = {
            name: tf.io.FixedLenFeature([], dtype, default_value=defaults[dtype])
            for name, dtype in self._dtypes.items()
        }
        return {"score": self._score(tf.io.parse_example(examples, spec))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])  # type: ignore[untyped-decorator]
    def regress(self, inputs: Any) -> dict[str, Any]:
        """The same scores under the names that TensorFlow Serving's Regress needs."""
        return {"outputs": self.serve(inputs)["score"]}

    def _score(self, columns: dict[str, Any]) -> Any:
        hidden = tf.concat([self._input(name, columns[name]) for name in self._dtypes], axis=1)
        for kernel, bias in zip(self.kernels[:-1], self.biases[:-1], strict=True):
            hidden = tf.nn.relu(tf.matmul(hidden, kernel) + bias)
        logits = tf.matmul(hidden, self.kernels[-1]) + self.biases[-1]
        return tf.squeeze(tf.sigmoid(logits), axis=1)

    def _input(self, name: str, column: Any) -> Any:
        if column.dtype == tf.float32:
            return column[:, None]
        if column.dtype == tf.string:
            ids = tf.strings.to_hash_bucket_fast(column, self._sizes.buckets)
        else:
            ids = tf.math.floormod(column, self._sizes.buckets)
        return tf.gather(self.tables[name], ids)


def ensure(sizes: Wide, work_dir: Path = Path("build/zoo")) -> Path:
    """The model's base path; writes the model if it is missing."""
    base_path = work_dir / sizes.name

    def make(folder: Path) -> dict[str, Any]:
        module = WideModule(sizes)
        tf.saved_model.save(
            module,
            str(folder),
            signatures={"serving_default": module.serve, "regress": module.regress},
        )
        return {}

    cached(base_path, (sys.modules[__name__],), make, settings=repr(sizes))
    return base_path


def requests(sizes: Wide, candidates: int, seed: int) -> Iterator[tuple[Row, list[Row]]]:
    """Endless distinct requests, determined by the seed: a user row and `candidates` item rows."""
    random = np.random.default_rng(seed)
    user = {name: dtype for name, dtype in sizes.dtypes.items() if name.startswith("user")}
    item = {name: dtype for name, dtype in sizes.dtypes.items() if name.startswith("item")}
    while True:
        yield _rows(user, 1, random)[0], _rows(item, candidates, random)


def _rows(dtypes: dict[str, Any], count: int, random: np.random.Generator) -> list[Row]:
    columns: dict[str, list[Any]] = {}
    for name, dtype in dtypes.items():
        if dtype == tf.float32:
            columns[name] = random.normal(size=count).astype(np.float32).tolist()
        else:
            numbers = random.integers(0, 1_000_000, count).tolist()
            columns[name] = [f"{name[:1]}{n}" for n in numbers] if dtype == tf.string else numbers
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
