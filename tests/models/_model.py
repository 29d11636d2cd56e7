"""Describes the models of the registry, and draws random rows for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from .saving import serialized

Row = dict[str, Any]  # feature -> list of values; a feature may be missing
Spec = Mapping[str, Any]  # feature -> how tf.io.parse_example reads it
Random = np.random.Generator


class Expected(StrEnum):
    """What a candidate's outputs depend on, besides the candidate and its user."""

    INDEPENDENT = "independent"
    INTERACTING = "interacting"
    LENGTH = "length"  # how far lists are padded
    REFUSED = "refused"  # nothing else, if requests are well formed, but the rule cannot tell


@dataclass(frozen=True)
class RankingModel:
    """A model that is exported, and what to expect from its export.

    Attributes:
      name: its name in the registry and on a server.
      build: saves a version of the model into a folder.
      spec: its features; for a model that takes tensors, the features from which they are made.
      expected: the verdict that the export must reach.
      why: the ops that cause this verdict.
      user: the user's features, or patterns of them.
      row: draws a row of all features.
      signature: the signature to export.
      parses: whether it takes tf.Examples; otherwise it takes tensors.
      users_per_run: for an independent model, "one" if gathering its states would cost more than it
          saves.
      own_length: for an independent model, the lists that must be equally long in one run,
          because a state has an entry per value, or a softmax weights padding.
      recorded: whether the export needs recorded rows, because it refuses generated ones.
    """

    name: str
    build: Callable[[Path], None]
    spec: Spec
    expected: Expected
    why: str
    user: Sequence[str] = ("user_*",)
    row: Callable[[Random], Mapping[str, Any]] | None = None
    signature: str = "serving_default"
    parses: bool = True
    users_per_run: str = "many"
    own_length: Sequence[str] = ()
    recorded: bool = False

    def draw(self, random: Random) -> Row:
        return dict(self.row(random) if self.row else row_of(self.spec, random))

    def examples(self, rows: int, seed: int) -> list[bytes]:
        """Random rows as serialized tf.Examples."""
        random = np.random.default_rng(seed)
        return [serialized(self.draw(random)) for _ in range(rows)]


def row_of(spec: Spec, random: Random) -> Row:
    """Random values that fit a spec: small ids, and floats whose sums are exact."""
    row: Row = {}
    for name, feature in spec.items():
        if isinstance(feature, tf.io.FixedLenFeature):
            count = int(np.prod(feature.shape, dtype=int))
        else:
            count = int(random.integers(0, 7))
        row[name] = _values(feature.dtype, count, random)
    return row


COUNTRIES = [b"DE", b"FR", b"IT", b"LI", b"US"]
RARE_COUNTRY = b"LI"  # no trial of an export contains it


def _values(dtype: Any, count: int, random: Random) -> list[Any]:
    if dtype == tf.int64:
        return random.integers(1, 64, count).tolist()
    if dtype == tf.string:
        return [COUNTRIES[i] for i in random.integers(0, len(COUNTRIES), count)]
    return (random.integers(-16, 17, count) / 4).tolist()
