"""The values generated for a feature, from bold ones that reveal differences to modest ones.

A model may refuse a bold value in every format, for example an id that is too large for a table or
a string that is not a number. Its score may also be NaN, for example if it takes the logarithm of a
negative price. `_generate` finds the boldest domain that the model accepts.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from colcast.export.convert._features import Scalar

Random = np.random.Generator
Draw = Callable[[Random, int], Any]  # returns an array of that many values

_LARGEST_BITS = 16  # a model may use a value as a size or a number of steps
_WORDS = ("", "unknown", "Größe 東京", "a b", "17", "-2.5", "x" * 40)


@dataclasses.dataclass(frozen=True)
class Domain:
    """A set of values to draw from.

    Attributes:
      draw: returns an array of random values, given a generator and their number.
      ends: the extreme values, which the first rows get so that the model refuses them early.
      description: the values in words.
    """

    draw: Draw
    ends: tuple[Scalar, ...]
    description: str = "any"


Ladder = Sequence[Domain]
"""A feature's domains, boldest first; the last has a single value.

A model that accepts one domain mostly accepts all later ones.
"""


def ladder(dtype: str, known: Sequence[Scalar]) -> Ladder:
    """A dtype's domains: all values; values that the model looks up or, if none, ordinary ones.

    Args:
      dtype: one of `_features.DTYPES`.
      known: values that the model treats specially, in the type in which it stores them.
    """
    if dtype == "bool":
        return [Domain(_one_of([False, True]), (), "any"), Domain(_one_of([True]), (), "True")]
    if dtype == "string":
        keys: list[Any] = [v if isinstance(v, bytes) else str(v).encode() for v in known]
        return _strings(keys)
    if "int" in dtype:
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        found = [key for key in map(_as_int, known) if key is not None and least <= key <= most]
        return _ints(found, least, most)
    edges = [edge for edge in map(_as_float, known) if edge is not None]
    return _floats(edges, 1e3 if dtype == "float16" else 1e6)


def _ints(keys: Sequence[int], least: int, most: int) -> Ladder:
    bold: list[Draw] = [
        functools.partial(_between, max(-3, least), 30),
        functools.partial(_between, 0, min(1 << _LARGEST_BITS, most)),
        functools.partial(_between, max(-(1 << 62), least), min(1 << 62, most)),
        _one_of(keys or [0]),
    ]
    boldest = Domain(functools.partial(_mix, bold), (most, least, -1 if least else 1))
    bits = range(min(_LARGEST_BITS, most.bit_length()), 0, -1)
    positive = [
        Domain(functools.partial(_between, 1, 1 << n), ((1 << n) - 1, 1), f"1 to {(1 << n) - 1}")
        for n in bits
    ]
    return [boldest, *(_known(keys) or positive)]


def _floats(edges: Sequence[float], large: float) -> Ladder:
    bold: list[Draw] = [
        functools.partial(_normal, 1.0),
        functools.partial(_normal, large),
        _one_of([0.0, *edges, *(float(np.float32(e - 1e-3)) for e in edges)]),
    ]
    above: list[Draw] = [functools.partial(_log_uniform, large)]
    above += [_one_of([edge for edge in edges if edge > 0])] if max(edges, default=0) > 0 else []
    small = 1 / large
    return [
        Domain(functools.partial(_mix, bold), (0.0, -large)),
        Domain(functools.partial(_mix, above), (small, large), f"{small:g} to {large:g}"),
        Domain(functools.partial(_normal, 1.0), (0.0,), "about -4 to 4"),
        Domain(functools.partial(_log_uniform, 10.0), (0.1, 10.0), "0.1 to 10"),
        Domain(functools.partial(_uniform, 0.05, 0.95), (), "0.05 to 0.95"),
        Domain(_one_of([0.75]), (), "0.75"),  # which also rounds to a positive number
    ]


def _strings(keys: Sequence[bytes]) -> Ladder:
    words = [word.encode() for word in _WORDS]
    bold: list[Draw] = [_one_of(words), _one_of(keys or words), _fresh]
    numbers = Domain(_one_of([b"%d" % n for n in range(100)]), (b"99", b"0"), "'0' to '99'")
    boldest = Domain(functools.partial(_mix, bold), (b"", b"x" * 300))
    return [boldest, *(_known(keys) or [numbers, Domain(_one_of([b"1"]), (), "'1'")])]


def _known(keys: Sequence[Scalar]) -> Ladder:
    """The values that a model looks up, since it may accept no others."""
    counts = sorted({len(keys), min(2, len(keys)), min(1, len(keys))}, reverse=True)
    described = "values that the model looks up"
    return [Domain(_one_of(keys[:count]), (), described) for count in counts if count]


def _mix(draws: Sequence[Draw], random: Random, count: int) -> Any:
    """Draws each value with one of `draws`, chosen at random."""
    drawn = [draw(random, count) for draw in draws]
    kinds = random.integers(0, len(drawn), count)
    return np.choose(kinds, drawn)


def _one_of(choices: Sequence[Scalar]) -> Draw:
    # Bytes stay objects, since NumPy's own type drops trailing zeros.
    values = np.array(choices, object if isinstance(choices[0], bytes) else None)
    return lambda random, count: values[random.integers(0, len(values), count)]


def _between(low: int, high: int, random: Random, count: int) -> Any:
    """Random integers from `low` to below `high`."""
    return random.integers(low, high, count)


def _normal(scale: float, random: Random, count: int) -> Any:
    return (random.normal(size=count) * scale).astype(np.float32)


def _uniform(low: float, high: float, random: Random, count: int) -> Any:
    return random.uniform(low, high, count).astype(np.float32)


def _log_uniform(large: float, random: Random, count: int) -> Any:
    """Random numbers from 1 / `large` to `large`, equally often below and above 1."""
    return (large ** random.uniform(-1, 1, count)).astype(np.float32)


def _fresh(random: Random, count: int) -> Any:
    words = np.empty(count, object)
    words[:] = [b"w%d" % number for number in random.integers(0, 100_000, count)]
    return words


def _as_float(value: Scalar) -> float | None:
    try:
        return float(np.float32(value))
    except ValueError:
        return None


def _as_int(value: Scalar) -> int | None:
    number = _as_float(value)
    return None if number is None or abs(number) >= 1 << 62 else int(value)
