"""Traffic made up from what the served model's signature declares, where no data is at hand."""

from collections.abc import Collection, Sequence
from fnmatch import fnmatch
from typing import Any

import numpy as np
from colcast.client import Feature, Kind, ModelSchema, SchemaError
from colcast.loadtest.formats import RequestData

_MEAN_LENGTH = 5  # of multi-valued features
_IDS = 100_000


def generated(
    schema: ModelSchema, sizes: Sequence[int], seed: int, user_patterns: Sequence[str] = ()
) -> list[RequestData]:
    """One request of random values for every size.

    Integers are ids below 100,000, floats are normal, strings are "v" and an id; multi-valued
    features hold five values on average.

    Args:
      schema: the served model's; its columnar signature says what the features are.
      sizes: N of each request.
      seed: decides every value.
      user_patterns: which features are the user's, like `user_*`; where there are none, those
        that the late signature takes as one row.

    Raises:
      colcast.client.SchemaError: the model has no columnar signature.
      ValueError: a pattern that matches no feature.
    """
    features = schema.signature("columnar").features
    user = _user_features(schema, features, user_patterns)
    random = np.random.default_rng(seed)
    return [_request(features, user, size, random) for size in sizes]


def _user_features(
    schema: ModelSchema, features: Collection[str], patterns: Sequence[str]
) -> set[str]:
    if not patterns:
        try:
            late = schema.signature("columnar_late").features
        except SchemaError:
            return set()
        return {name for name, feature in late.items() if feature.one_row}
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in features):
            raise ValueError(f"no feature matches {pattern!r}; there are {', '.join(features)}")
    return {name for name in features if any(fnmatch(name, pattern) for pattern in patterns)}


def _request(
    features: dict[str, Feature], user: set[str], rows: int, random: np.random.Generator
) -> RequestData:
    given = {
        name: _values(feature, 1 if name in user else rows, random)
        for name, feature in sorted(features.items())  # a server lists them in any order
        if feature.kind is not Kind.WHOLE
    }
    return RequestData(
        rows=rows,
        user={name: values[0] for name, values in given.items() if name in user},
        items={name: values for name, values in given.items() if name not in user},
    )


def _values(feature: Feature, rows: int, random: np.random.Generator) -> list[Any]:
    """One entry per row: a scalar, or a list where the feature has several values."""
    shape = [size or 1 for size in feature.shape or ()]
    if feature.kind not in (Kind.MULTI, Kind.SEQUENCE):
        return list(_draw(feature, [rows, *shape], random))
    ends = np.cumsum(random.poisson(_MEAN_LENGTH, rows)).tolist()
    values = _draw(feature, [ends[-1], *shape[1:]], random)
    return [values[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _draw(feature: Feature, shape: Sequence[int], random: np.random.Generator) -> Any:
    kind = feature.dtype.name
    if kind == "string":
        ids = random.integers(0, _IDS, shape)
        return np.array([f"v{i}" for i in ids.ravel()], object).reshape(ids.shape).tolist()
    if kind == "bool":
        return (random.random(shape) < 0.5).tolist()
    if "int" in kind:
        top = min(_IDS, int(np.iinfo(feature.dtype.storage).max))
        return random.integers(0, top, shape).tolist()
    return random.normal(size=shape).tolist()
