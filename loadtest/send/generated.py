"""Generates traffic from the served model's signature."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from typing import Any

import numpy as np
from colcast.client import (
    Feature,
    Kind,
    ModelSchema,
    RankingClient,
    SchemaError,
    ServerError,
    Signature,
)
from colcast.loadtest.send.formats import RequestData, signature_for

_MEAN_LENGTH = 5  # for multi-valued features
_LISTS = (Kind.MULTI, Kind.SEQUENCE)
_TRIED_SIZES = (2, 3, 5)  # sizes of the requests that test whether a model accepts lists
_BOUNDS = (10_000, 1_000, 100, 10, 1)
IDS = 100_000
"""The upper bound of integers, and the number of different strings."""
Accepts = Callable[[RequestData], bool]
Random = np.random.Generator


def generated(
    schema: ModelSchema,
    sizes: Sequence[int],
    seed: int,
    user_patterns: Sequence[str] = (),
    signature: str | None = None,
    ids: int = IDS,
    accepts: Accepts = lambda _: True,
) -> list[RequestData]:
    """Makes one request of random values for every size.

    Integers are ids below `ids` or, if the model refuses them, below a smaller bound. Floats are
    normally distributed; strings are "v" and an id. Multi-valued features have five values on
    average, or all have one if the model accepts nothing else.

    Args:
      schema: the served model's schema; its columnar signature describes the features.
      sizes: the number of candidates of each request.
      seed: decides every value.
      user_patterns: patterns of the user's features, such as `user_*`; if empty, the features that
        the late signature takes as one row.
      signature: the signature whose inputs are generated; None for the columnar one.
      ids: the upper bound of integers.
      accepts: whether the model accepts a request.
    """
    late = signature_for(schema, "late", signature) or "columnar_late"
    features = _columns(schema, signature).features
    user = _user_features(schema, late, features, user_patterns)

    def drawn(sizes: Sequence[int], values: _Values) -> list[RequestData]:
        random = np.random.default_rng(seed)
        return [_request(features, user, size, values, random) for size in sizes]

    for bound in (ids, *(bound for bound in _BOUNDS if bound < ids)):
        for one_value in (False, True):
            values = _Values(bound, one_value)
            if all(map(accepts, drawn(_TRIED_SIZES, replace(values, largest=True)))):
                return drawn(sizes, values)
    return drawn(sizes, _Values(ids))


@dataclass(frozen=True)
class _Values:
    """How values are generated.

    Attributes:
      ids: the upper bound of integers, and the number of different strings.
      one_value: whether every row of a list has one value.
      largest: whether one value of every feature is its largest integer.
    """

    ids: int
    one_value: bool = False
    largest: bool = False


def _columns(schema: ModelSchema, signature: str | None) -> Signature:
    called = signature_for(schema, "columnar", signature)
    own = schema.signature(called) if called else schema.columnar_signature()
    return own or schema.signature("columnar")


def _user_features(
    schema: ModelSchema, late: str, features: Collection[str], patterns: Sequence[str]
) -> set[str]:
    if not patterns:
        try:
            found = schema.signature(late).features
        except SchemaError:
            return set()
        return {name for name in features if name in found and found[name].one_row}
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in features):
            raise ValueError(
                f"no feature matches {pattern!r}; the features are {', '.join(features)}"
            )
    return {name for name in features if any(fnmatch(name, pattern) for pattern in patterns)}


def _request(
    features: dict[str, Feature], user: set[str], rows: int, how: _Values, random: Random
) -> RequestData:
    given_once: dict[str, Any] = {}
    items: dict[str, Any] = {}
    for name, feature in sorted(features.items()):  # servers list them in any order
        if feature.kind is Kind.WHOLE:
            given_once[name] = _draw(
                feature, [size or 0 for size in feature.shape or ()], how, random
            )
        elif name in user:
            (given_once[name],) = _rows(feature, 1, how, random)
        else:
            items[name] = _rows(feature, rows, how, random)
    return RequestData(rows=rows, user=given_once, items=items)


def _rows(feature: Feature, rows: int, how: _Values, random: Random) -> list[Any]:
    """One entry per row: a scalar, or a list if the feature has several values."""
    shape = [size or 1 for size in feature.shape or ()]
    if feature.kind not in _LISTS:
        return list(_draw(feature, [rows, *shape], how, random))
    lengths = np.ones(rows, int) if how.one_value else random.poisson(_MEAN_LENGTH, rows)
    ends = np.cumsum(lengths).tolist()
    values = _draw(feature, [ends[-1], *shape[1:]], how, random)
    return [values[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _draw(feature: Feature, shape: Sequence[int], how: _Values, random: Random) -> Any:
    kind = feature.dtype.name
    if kind == "string":
        words = random.integers(0, how.ids, shape)
        return np.array([f"v{i}" for i in words.ravel()], object).reshape(words.shape).tolist()
    if kind == "bool":
        return (random.random(shape) < 0.5).tolist()
    if "int" in kind:
        top = min(how.ids, int(np.iinfo(feature.dtype.storage).max))
        ids = random.integers(0, top, shape)
        ids.flat[: int(how.largest)] = top - 1
        return ids.tolist()
    return random.normal(size=shape).tolist()


REFUSALS = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "INTERNAL", "UNIMPLEMENTED")
"""gRPC codes of failures due to the request or its values."""
ADVICE = "generated values may not suit the model: try --traffic requests:FILE or examples:FILE"


def accepted_by(client: RankingClient, signature: str | None) -> Accepts:
    """Makes a function that asks a server whether its model accepts a request.

    The function sends the user's features on every row.

    Args:
      client: the client of the server.
      signature: the signature that takes the columns; None for the usual one.
    """

    def accepts(data: RequestData) -> bool:
        with replace(client, signature=signature) as one:
            try:
                one.rank(data.user, data.items, target="repeated")
            except ServerError as error:
                if error.code in REFUSALS:
                    return False
                raise
        return True

    return accepts
