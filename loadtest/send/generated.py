"""Generates traffic from the served model's signature."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
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

    Integers are ids below `ids`, or below a smaller bound if the model requires it. Floats are
    normally distributed; strings are "v" and an id. Multi-valued features have five values on
    average, or one if the model accepts no other number.

    Args:
      schema: the served model's schema; its columnar signature describes the features.
      sizes: the number of candidates of each request.
      seed: decides every value.
      user_patterns: patterns of the user's features, such as `user_*`; if empty, the features that
        the late signature takes as one row.
      signature: the signature whose inputs are generated; None for the columnar one.
      ids: the upper bound of integers.
      accepts: whether the model accepts a request.

    Raises:
      colcast.client.SchemaError: the model has no such signature, or no columnar one.
      ValueError: a pattern matches no feature.
    """
    late = signature_for(schema, "late", signature) or "columnar_late"
    features = _columns(schema, signature).features
    user = _user_features(schema, late, features, user_patterns)

    def drawn(sizes: Sequence[int], values: _Values) -> list[RequestData]:
        random = np.random.default_rng(seed)
        return [_request(features, user, size, values, random) for size in sizes]

    def takes(of_one: Collection[str], below: Mapping[str, int]) -> bool:
        return all(map(accepts, drawn(_TRIED_SIZES, _Values(below, ids, of_one, largest=True))))

    lists = [name for name, feature in features.items() if feature.kind in _LISTS]
    numbers = [name for name, feature in features.items() if "int" in feature.dtype.name]
    if takes((), {}):
        return drawn(sizes, _Values({}, ids))
    of_one = fewest(lists, lambda names: takes(names, dict.fromkeys(numbers, 1)))
    below = ids_below(numbers, ids, lambda below: takes(of_one, below))
    return drawn(sizes, _Values(below, ids, of_one))


@dataclass(frozen=True)
class _Values:
    """How values are generated.

    Attributes:
      below: feature -> upper bound of its integers.
      ids: the upper bound for other features, and the number of different strings.
      of_one: list features whose rows have one value each.
      largest: whether every value is the feature's largest integer.
    """

    below: Mapping[str, int]
    ids: int
    of_one: Collection[str] = ()
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
    one = feature.name in how.of_one
    lengths = np.ones(rows, int) if one else random.poisson(_MEAN_LENGTH, rows)
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
        most = int(np.iinfo(feature.dtype.storage).max)
        top = min(how.below.get(feature.name, how.ids), most)
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


def fewest(names: Collection[str], helps: Callable[[Collection[str]], bool]) -> set[str]:
    """A small set of features that need modest values for the model to accept a request.

    Empty if none does, or if the model refuses requests in which all have modest values.

    Args:
      names: names of features.
      helps: whether the model accepts requests in which these features have modest values.
    """
    if helps(()) or not helps(names):
        return set()
    needed = set(names)

    def spare(names: list[str]) -> None:
        if helps(needed - set(names)):
            needed.difference_update(names)
        elif len(names) > 1:
            spare(names[: len(names) // 2])
            spare(names[len(names) // 2 :])

    spare(sorted(names))
    return needed


def ids_below(
    names: Collection[str], ids: int, takes: Callable[[Mapping[str, int]], bool]
) -> dict[str, int]:
    """Upper bounds of the integer features for which the model refuses some ids below `ids`.

    Args:
      names: names of integer features.
      ids: the upper bound of other features.
      takes: whether the model accepts requests with these bounds.
    """
    found: dict[str, int] = {}
    left = set(names)

    def helps(bound: int, small: Collection[str]) -> bool:
        return takes({**found, **{name: 1 if name in small else bound for name in left}})

    for bound in _bounds(ids):
        small = fewest(left, partial(helps, bound))
        if bound < ids:
            found |= dict.fromkeys(left - small, bound)
        left = small
        if not left:
            break
    return found


def _bounds(ids: int) -> Iterator[int]:
    """Yields `ids` and every power of two below it."""
    yield ids
    yield from (1 << bits for bits in range((ids - 1).bit_length() - 1, -1, -1))
