"""Traffic generated from the served model's signature."""

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

_MEAN_LENGTH = 5  # of multi-valued features
_LISTS = (Kind.MULTI, Kind.SEQUENCE)
_TRIED_SIZES = (2, 3, 5)  # of requests that show whether a model takes lists
IDS = 100_000
"""What integers are below, and how many strings there are."""
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
    """One request of random values for every size.

    Integers are ids below `ids`, or as far below it as the model takes them; floats are normal,
    strings are "v" and an id; multi-valued features have five values on average, or one if the
    model takes no other number.

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
    """How values are drawn.

    Attributes:
      below: feature -> what its integers are below.
      ids: the same for other features, and how many strings there are.
      of_one: lists with one value each.
      largest: whether each feature has its largest integer.
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
            raise ValueError(f"no feature matches {pattern!r}; there are {', '.join(features)}")
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
    """One entry per row: a scalar, or a list where the feature has several values."""
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
"""gRPC codes that blame the request, or its values."""
ADVICE = "generated values may not suit it, try --traffic requests:FILE or examples:FILE"


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
                if error.code in REFUSALS:
                    return False
                raise
        return True

    return accepts


def fewest(names: Collection[str], helps: Callable[[Collection[str]], bool]) -> set[str]:
    """The fewest of these names that help; empty if all of them do not.

    Args:
      names: of features.
      helps: whether the model takes requests in which these features have modest values.
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
    """Upper bounds of integer features that do not take every id below `ids`.

    Args:
      names: of features of integers.
      ids: what others are below.
      takes: whether the model takes requests with these bounds.
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
    """`ids`, and every power of two below it."""
    yield ids
    yield from (1 << bits for bits in range((ids - 1).bit_length() - 1, -1, -1))
