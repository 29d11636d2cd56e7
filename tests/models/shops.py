"""A ranking model with shops and campaigns among its domains: features and a layer for each."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export import export_saved_model

from .saving import save_parser

layers = tf.keras.layers
DOMAINS = ("user", "item", "shop", "campaign")
PATTERNS = {domain: [f"{domain}_*"] for domain in ("shop", "campaign")}
_WORDS = np.array([b"", b"red", b"green", b"blue", b"never seen before"], object)
_KINDS = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "number": tf.io.FixedLenFeature([2], tf.float32, [0.0, 1.0]),
    "name": tf.io.FixedLenFeature([], tf.string, b"red"),
    "list": tf.io.VarLenFeature(tf.int64),
}


def spec(of_a_kind: int = 1) -> dict[str, Any]:
    """The features of all domains: `of_a_kind` of each kind per domain."""
    return {
        f"{domain}_{kind}_{number}": feature
        for domain in DOMAINS
        for kind, feature in _KINDS.items()
        for number in range(of_a_kind)
    }


class Shops(tf.Module):  # type: ignore[misc]
    """A tower for each domain, and a network over all of them."""

    def __init__(self, of_a_kind: int) -> None:
        super().__init__()
        self.spec = spec(of_a_kind)
        tf.keras.utils.set_random_seed(1)
        self.tables = {name: layers.Embedding(64, 16) for name in self.spec}
        self.towers = {domain: layers.Dense(64, activation="relu") for domain in DOMAINS}
        self.top = layers.Dense(32, activation="relu", bias_initializer="uniform")
        self.score = layers.Dense(1, activation="sigmoid")

    def _embedded(self, name: str, column: Any) -> Any:
        if isinstance(column, tf.sparse.SparseTensor):
            filled = tf.sparse.to_dense(column, default_value=-1)
            mask = tf.cast(filled >= 0, tf.float32)[:, :, None]
            return tf.reduce_sum(self.tables[name](tf.math.floormod(filled, 64)) * mask, 1)
        if column.dtype == tf.string:
            return self.tables[name](tf.strings.to_hash_bucket_fast(column, 64))
        if column.dtype == tf.int64:
            return self.tables[name](tf.math.floormod(column, 64))
        return tf.math.log1p(tf.abs(column))

    def scores(self, columns: dict[str, Any]) -> dict[str, Any]:
        towers = []
        for domain, tower in self.towers.items():
            names = [name for name in columns if name.startswith(f"{domain}_")]
            own = [self._embedded(name, columns[name]) for name in sorted(names)]
            towers.append(tower(tf.concat(own, 1)))
        return {"score": self.score(self.top(tf.concat(towers, 1)))[:, 0]}


def save(folder: Path, of_a_kind: int = 1) -> None:
    module = Shops(of_a_kind)
    save_parser(folder, module, module.spec, module.scores)


def export(folder: Path) -> Path:
    """Saves the model and its export, which has a stage for every domain; returns the base path."""
    save(folder / "model")
    served = folder / "served"
    export_saved_model(
        folder / "model", served / "1", user_features=["user_*"], domains=PATTERNS, late=True
    )
    return served


def saved(version: Path) -> Path:
    """The folder of the original of an exported version."""
    return version.parents[1] / "model"


def rows(
    domain: str, count: int, random: np.random.Generator, of_a_kind: int = 1
) -> dict[str, Any]:
    """Random columns of `count` rows of a domain."""
    columns: dict[str, Any] = {}
    for name, feature in spec(of_a_kind).items():
        if not name.startswith(f"{domain}_"):
            continue
        if isinstance(feature, tf.io.VarLenFeature):
            lengths = random.integers(0, 6, count)
            longest = int(lengths.max(initial=0))
            columns[name] = random.integers(0, 1000, (count, longest)) * (
                np.arange(longest) < lengths[:, None]
            )
            columns[f"{name}/length"] = lengths
        elif feature.dtype == tf.int64:
            columns[name] = random.integers(0, 1000, count)
        elif feature.dtype == tf.string:
            columns[name] = random.choice(_WORDS, count)
        else:
            columns[name] = random.normal(size=(count, 2)).astype(np.float32)
    return columns
