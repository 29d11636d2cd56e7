"""The values generated for a feature, from bold ones that reveal differences to modest ones.

A model may refuse a bold value in every format, for example an id that is too large for a table or
a string that is not a number. Its score may also be NaN, for example if it takes the logarithm of a
negative price. `_generate` finds the boldest domain that the model accepts.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
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
"""Domains of a dtype, boldest first; the last has a single value.

A model that accepts one domain is assumed to accept all later ones.
"""


def ladders(dtype: str, known: Sequence[Scalar]) -> list[Ladder]:
    """A dtype's ladders: all values, positive numbers, and values that the model looks up.

    Args:
      dtype: one of `_features.DTYPES`.
      known: values that the model treats specially, in the type in which it stores them.
    """
    if dtype == "string":
        keys = [value if isinstance(value, bytes) else str(value).encode() for value in known]
        return [list(_strings(keys)), *_known(keys)]
    if dtype == "bool":
        picked = ([False, True], [True])
        return [[Domain(_one_of(values), (), str(values)) for values in picked]]
    if "int" in dtype:
        limits = np.iinfo(dtype)
        least, most = int(limits.min), int(limits.max)
        found = [key for key in map(_as_int, known) if key is not None and least <= key <= most]
        return [list(_ints(found, least, most)), list(_ints_from(found, 1, most)), *_known(found)]
    edges = [edge for edge in map(_as_float, known) if edge is not None]
    large = 1e3 if dtype == "float16" else 1e6
    return [list(_floats(edges, large)), list(_positive_floats(edges, large))]


def _ints(keys: Sequence[int], least: int, most: int) -> Iterator[Domain]:
    bold: list[Draw] = [
        functools.partial(_between, max(-3, least), 30),
        functools.partial(_between, 0, min(1 << _LARGEST_BITS, most)),
        functools.partial(_between, max(-(1 << 62), least), min(1 << 62, most)),
        _one_of(keys or [0]),
    ]
    yield Domain(functools.partial(_mix, bold), (most, least, -1 if least else 1))
    yield from _ints_from(keys, 0, most)
    yield Domain(_one_of([0]), (), "0")


def _ints_from(keys: Sequence[int], least: int, most: int) -> Iterator[Domain]:
    """Integer domains from `least` (0 or 1) to ever smaller maxima; the last maximum is 1."""
    for bits in range(min(_LARGEST_BITS, most.bit_length()), 0, -1):
        below = functools.partial(_between, least, 1 << bits)
        valid = [key for key in keys if least <= key < 1 << bits]
        draws: list[Draw] = [below, _one_of(valid)] if valid else [below]
        largest = (1 << bits) - 1
        yield Domain(functools.partial(_mix, draws), (largest, least), f"{least} to {largest}")


def _floats(edges: Sequence[float], large: float) -> Iterator[Domain]:
    normal = functools.partial(_normal, 1.0)
    bold: list[Draw] = [
        normal,
        functools.partial(_normal, large),
        _one_of([0.0, *edges, *(float(np.float32(e - 1e-3)) for e in edges)]),
    ]
    yield Domain(functools.partial(_mix, bold), (0.0, -large))
    yield Domain(normal, (0.0,), "about -4 to 4")
    yield Domain(functools.partial(_uniform, 0.0, 1.0), (0.0,), "0 to 1")
    yield Domain(_one_of([1.0]), (), "1")


def _positive_floats(edges: Sequence[float], large: float) -> Iterator[Domain]:
    positive = [edge for edge in edges if edge > 0]
    bold: list[Draw] = [functools.partial(_log_uniform, large)]
    bold += [_one_of(positive)] if positive else []
    small = 1 / large
    yield Domain(functools.partial(_mix, bold), (small, large), f"{small:g} to {large:g}")
    yield Domain(functools.partial(_log_uniform, 10.0), (0.1, 10.0), "0.1 to 10")
    yield Domain(functools.partial(_uniform, 0.05, 0.95), (), "0.05 to 0.95")
    yield Domain(_one_of([0.5]), (), "0.5")


def _known(keys: Sequence[Scalar]) -> list[Ladder]:
    """A ladder with the values that a model looks up, since it may accept no others."""
    counts = sorted({len(keys), min(2, len(keys)), min(1, len(keys))}, reverse=True)
    described = "values that the model looks up"
    some = [keys[:count] for count in counts]
    return [[Domain(_one_of(of), (), described) for of in some]] if keys else []


def _strings(keys: Sequence[bytes]) -> Iterator[Domain]:
    words = [word.encode() for word in _WORDS]
    pick_key = _one_of(keys or words)
    bold: list[Draw] = [_one_of(words), pick_key, _fresh]
    yield Domain(functools.partial(_mix, bold), (b"", b"x" * 300))
    if keys:
        yield Domain(pick_key, (), "words that the model looks up")
    numbers = [str(n).encode() for n in range(100)]
    yield Domain(_one_of(numbers), (b"99", b"0"), "'0' to '99'")
    yield Domain(_one_of([b"1"]), (), "'1'")


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
