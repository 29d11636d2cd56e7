"""Traffic generated from the served model's signature."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any

import numpy as np
from colcast.client import Feature, Kind, ModelSchema, RankingClient, SchemaError, ServerError
from colcast.loadtest.send.formats import RequestData, signature_for

_MEAN_LENGTH = 5  # of multi-valued features
_LISTS = (Kind.MULTI, Kind.SEQUENCE)
_TRIED_SIZES = (2, 3, 5)  # of requests that show whether a model takes lists
IDS = 100_000
"""What integers are below, and how many strings there are."""
Accepts = Callable[[RequestData], bool]


def generated(
    schema: ModelSchema,
    sizes: Sequence[int],
    seed: int,
    user_patterns: Sequence[str] = (),
    signature: str | None = None,
    ids: int = IDS,
    accepts: Accepts = lambda _: True,
) -> list[RequestData]:
    """One request of random values for every size.

    Integers are ids below `ids`, floats are normal, strings are "v" and an id; multi-valued
    features have five values on average, or one if the model takes no other number.

    Args:
      schema: the served model's; its columnar signature says what the features are.
      sizes: N of each request.
      seed: decides every value.
      user_patterns: which features are the user's, like `user_*`; where there are none, those
        that the late signature takes as one row.
      signature: whose inputs they are; None: the columnar one's.
      ids: integers are below this.
      accepts: whether the model takes a request.

    Raises:
      colcast.client.SchemaError: the model has no such signature, or no columnar one.
      ValueError: a pattern that matches no feature.
    """
    columnar = signature_for(schema, "columnar", signature) or "columnar"
    late = signature_for(schema, "late", signature) or "columnar_late"
    features = schema.signature(columnar).features
    user = _user_features(schema, late, features, user_patterns)

    def requests(sizes: Sequence[int], of_one: Collection[str]) -> list[RequestData]:
        random = np.random.default_rng(seed)
        return [_request(features, user, size, ids, random, of_one) for size in sizes]

    lists = [name for name, feature in features.items() if feature.kind in _LISTS]
    of_one = one_valued(lists, lambda names: all(map(accepts, requests(_TRIED_SIZES, names))))
    return requests(sizes, of_one)


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
            raise ValueError(f"no feature matches {pattern!r}; there are {', '.join(features)}")
    return {name for name in features if any(fnmatch(name, pattern) for pattern in patterns)}


def _request(
    features: dict[str, Feature],
    user: set[str],
    rows: int,
    ids: int,
    random: np.random.Generator,
    of_one: Collection[str],
) -> RequestData:
    given_once: dict[str, Any] = {}
    items: dict[str, Any] = {}
    for name, feature in sorted(features.items()):  # servers list them in any order
        if feature.kind is Kind.WHOLE:
            given_once[name] = _draw(
                feature, [size or 0 for size in feature.shape or ()], ids, random
            )
            continue
        one = name in of_one
        if name in user:
            (given_once[name],) = _values(feature, 1, ids, random, one=one)
        else:
            items[name] = _values(feature, rows, ids, random, one=one)
    return RequestData(rows=rows, user=given_once, items=items)


def _values(
    feature: Feature, rows: int, ids: int, random: np.random.Generator, *, one: bool
) -> list[Any]:
    """One entry per row: a scalar, or a list where the feature has several values."""
    shape = [size or 1 for size in feature.shape or ()]
    if feature.kind not in _LISTS:
        return list(_draw(feature, [rows, *shape], ids, random))
    lengths = np.ones(rows, int) if one else random.poisson(_MEAN_LENGTH, rows)
    ends = np.cumsum(lengths).tolist()
    values = _draw(feature, [ends[-1], *shape[1:]], ids, random)
    return [values[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _draw(feature: Feature, shape: Sequence[int], ids: int, random: np.random.Generator) -> Any:
    kind = feature.dtype.name
    if kind == "string":
        words = random.integers(0, ids, shape)
        return np.array([f"v{i}" for i in words.ravel()], object).reshape(words.shape).tolist()
    if kind == "bool":
        return (random.random(shape) < 0.5).tolist()
    if "int" in kind:
        top = min(ids, int(np.iinfo(feature.dtype.storage).max))
        return random.integers(0, top, shape).tolist()
    return random.normal(size=shape).tolist()


_REFUSALS = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "INTERNAL", "UNIMPLEMENTED")


def accepted_by(client: RankingClient, signature: str | None) -> Accepts:
    """Asks a server whether its model takes a request, with the user on every row.

    Args:
      client: of the server.
      signature: that takes the columns; None: the usual one.
    """

    def accepts(data: RequestData) -> bool:
        with replace(client, signature=signature) as one:
            try:
                one.rank(data.user, data.items, target="repeated")
            except ServerError as error:
                if error.code in _REFUSALS:
                    return False
                raise
        return True

    return accepts


def one_valued(lists: Collection[str], tried: Callable[[Collection[str]], bool]) -> set[str]:
    """The fewest lists that must have one value each; empty if that does not help.

    Args:
      lists: names of multi-valued features.
      tried: whether the model takes requests in which those named have one value.
    """
    if tried(()) or not tried(lists):
        return set()
    needed = set(lists)

    def spare(names: list[str]) -> None:
        if tried(needed - set(names)):
            needed.difference_update(names)
        elif len(names) > 1:
            spare(names[: len(names) // 2])
            spare(names[len(names) // 2 :])

    spare(sorted(lists))
    return needed
