"""What values of a feature to generate: bold ones that show differences, and ever more modest ones.

A model may refuse bold values in every format: an id that indexes a table, a string that is parsed
as a number. `_generate` finds the boldest domain that it accepts.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from colcast.export._features import Scalar

Random = np.random.Generator
Draw = Callable[[Random, int], Sequence[Scalar]]

_LARGEST_BITS = 16  # a model may take a number for a size or for a number of steps
_WORDS = ("", "unknown", "Größe 東京", "a b", "17", "-2.5", "x" * 40)


@dataclasses.dataclass(frozen=True)
class Domain:
    """Values to draw from.

    Attributes:
      draw: gives that many random values.
      ends: the extreme ones, which the first rows get so that refusals show early.
    """

    draw: Draw
    ends: tuple[Scalar, ...]


def domains(dtype: str, known: Sequence[Scalar]) -> list[Domain]:
    """The domains of a dtype, boldest first; the last one is a single value.

    Args:
      dtype: one of `_features.DTYPES`.
      known: values that the model treats in a way of their own, of whatever type it has them in.
    """
    if dtype == "string":
        return list(_strings(known))
    if dtype == "bool":
        return [Domain(functools.partial(_pick, values), ()) for values in ([False, True], [True])]
    if "int" in dtype:
        limits = np.iinfo(dtype)
        return list(_ints(known, int(limits.min), int(limits.max)))
    return list(_floats(known, 1e3 if dtype == "float16" else 1e6))


def _ints(known: Sequence[Scalar], least: int, most: int) -> Iterator[Domain]:
    """The domains of integers from `least` to `most`."""
    found = (number for value in known if (number := _as_int(value)) is not None)
    keys = [number for number in found if least <= number <= most]
    bold: list[Draw] = [
        functools.partial(_between, max(-3, least), 30),
        functools.partial(_between, 0, min(1 << _LARGEST_BITS, most)),
        functools.partial(_between, max(-(1 << 62), least), min(1 << 62, most)),
        functools.partial(_pick, keys or [0]),
    ]
    yield Domain(functools.partial(_mix, bold), (most, least, -1 if least else 1))
    for bits in range(min(_LARGEST_BITS, most.bit_length()), 0, -1):
        below = functools.partial(_between, 0, 1 << bits)
        valid = [key for key in keys if 0 <= key < 1 << bits]
        draws: list[Draw] = [below, functools.partial(_pick, valid)] if valid else [below]
        draw = functools.partial(_mix, draws)
        yield Domain(draw, ((1 << bits) - 1, 0))
    yield Domain(functools.partial(_pick, [0]), ())


def _floats(known: Sequence[Scalar], large: float) -> Iterator[Domain]:
    edges = [number for value in known if (number := _as_float(value)) is not None]
    normal = functools.partial(_normal, 1.0)
    bold = [
        normal,
        functools.partial(_normal, large),
        functools.partial(_pick, [0.0, *edges, *(float(np.float32(e - 1e-3)) for e in edges)]),
    ]
    yield Domain(functools.partial(_mix, bold), (0.0, -large))
    yield Domain(normal, (0.0,))
    yield Domain(_fraction, (0.0,))
    yield Domain(functools.partial(_pick, [1.0]), ())


def _strings(known: Sequence[Scalar]) -> Iterator[Domain]:
    words = [word.encode() for word in _WORDS]
    keys = [value if isinstance(value, bytes) else str(value).encode() for value in known]
    pick_key = functools.partial(_pick, keys or words)
    bold: list[Draw] = [functools.partial(_pick, words), pick_key, _fresh]
    yield Domain(functools.partial(_mix, bold), (b"", b"x" * 300))
    if keys:
        yield Domain(pick_key, ())
    yield Domain(functools.partial(_pick, [str(n).encode() for n in range(100)]), (b"99", b"0"))
    yield Domain(functools.partial(_pick, [b"1"]), ())


def _mix(draws: Sequence[Draw], random: Random, count: int) -> list[Scalar]:
    """Each value from one of the draws."""
    drawn = [draw(random, count) for draw in draws]
    return [drawn[kind][i] for i, kind in enumerate(random.integers(0, len(drawn), count))]


def _pick(choices: Sequence[Scalar], random: Random, count: int) -> list[Scalar]:
    return [choices[i] for i in random.integers(0, len(choices), count)]


def _between(low: int, high: int, random: Random, count: int) -> list[Scalar]:
    """From `low` to below `high`."""
    return list(random.integers(low, high, count).tolist())


def _normal(scale: float, random: Random, count: int) -> list[Scalar]:
    return _as_float32(random.normal(size=count) * scale)


def _fraction(random: Random, count: int) -> list[Scalar]:
    return _as_float32(random.random(count))


def _fresh(random: Random, count: int) -> list[Scalar]:
    return [b"w%d" % number for number in random.integers(0, 100_000, count)]


def _as_float32(values: Any) -> list[Scalar]:
    return list(values.astype(np.float32).tolist())


def _as_float(value: Scalar) -> float | None:
    try:
        return float(np.float32(value))
    except ValueError:
        return None


def _as_int(value: Scalar) -> int | None:
    number = _as_float(value)
    return None if number is None or abs(number) >= 1 << 62 else int(value)
