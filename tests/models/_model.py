"""Describes the models of the registry, and draws random rows for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import tensorflow as tf

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
class Model:
    """A model of the registry.

    Attributes:
      name: its name in the registry and on a server.
      build: saves a version of the model into a folder; may take options.
    """

    name: str
    build: Callable[..., None]


@dataclass(frozen=True)
class ServedModel(Model):
    """A model that tests serve without an export.

    Attributes:
      columns: the inputs of its signatures, apart from states and indices.
      shows: its purpose in tests.
      domains: domain -> its columns, or patterns of them; all others are the items'.
    """

    columns: Sequence[str]
    shows: str
    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class RankingModel(Model):
    """A model that is exported, and what to expect from its export.

    Attributes:
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
      slow: whether saving and exporting it takes more than five seconds.
    """

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
    slow: bool = False

    def draw(self, random: Random) -> Row:
        return dict(self.row(random) if self.row else row_of(self.spec, random))


def row_of(spec: Spec, random: Random) -> Row:
    """Random values that fit a spec: small ids, and floats whose sums are exact."""
    row: Row = {}
    for name, feature in spec.items():
        if isinstance(feature, tf.io.FixedLenFeature):
            count = int(np.prod(feature.shape, dtype=int))
        else:
            count = int(random.integers(0, 7))
        row[name] = values(name, feature.dtype, count, random)
    return row


COUNTRIES = [b"DE", b"FR", b"IT", b"LI", b"US"]
RARE_COUNTRY = b"LI"  # no trial of an export contains it


def values(name: str, dtype: Any, count: int, random: Random) -> list[Any]:
    if dtype == tf.int64:
        return random.integers(1, 64, count).tolist()
    if dtype == tf.string:
        return [COUNTRIES[i] for i in random.integers(0, len(COUNTRIES), count)]
    return (random.integers(-16, 17, count) / 4).tolist()
