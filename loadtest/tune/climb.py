"""Hill climbing over a few knobs of a server, pair by pair.

DeepRecSys (Gupta et al., ISCA 2020) climbs over one knob, the rows of a slice: it starts at the
smallest value and goes up until the throughput falls. Here two knobs change together, because the
best value of one depends on the other: more workers need fewer threads each, and larger batches
need different slices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

Places = Sequence[int]  # indexes of knobs


@dataclass(frozen=True)
class Knob:
    """A setting of the server.

    Attributes:
      name: its name in `pairs` and in output.
      flag: the server's flag, with the value in braces: "--num_workers={}".
      values: the values to try, in order: the climb moves between neighbours.
      start: the first value, one of `values`.
    """

    name: str
    flag: str
    values: tuple[float, ...]
    start: float

    def neighbours(self, value: float) -> list[float]:
        """The value and its neighbours."""
        place = self.values.index(value)
        return list(self.values[max(place - 1, 0) : place + 2])

    def two_steps_away(self, value: float) -> list[float]:
        place = self.values.index(value)
        return [self.values[at] for at in (place - 2, place + 2) if 0 <= at < len(self.values)]


@dataclass(frozen=True)
class Setting:
    """One value for each knob, in the knobs' order."""

    knobs: tuple[Knob, ...]
    values: tuple[float, ...]

    @staticmethod
    def start(knobs: Sequence[Knob]) -> "Setting":
        return Setting(tuple(knobs), tuple(knob.start for knob in knobs))

    @property
    def flags(self) -> list[str]:
        """The settings as flags of the server."""
        return [
            knob.flag.format(value) for knob, value in zip(self.knobs, self.values, strict=True)
        ]

    def __str__(self) -> str:
        return ", ".join(
            f"{knob.name} {value}" for knob, value in zip(self.knobs, self.values, strict=True)
        )

    def around(self, places: Sequence[int]) -> "list[Setting]":
        """All settings at most one step away in the knobs at `places`, fewer steps first."""
        choices = [
            self.knobs[place].neighbours(value) if place in places else [value]
            for place, value in enumerate(self.values)
        ]

        def steps(values: tuple[float, ...]) -> int:
            return sum(value != own for value, own in zip(values, self.values, strict=True))

        beside = sorted(product(*choices), key=steps)
        return [Setting(self.knobs, values) for values in beside if values != self.values]

    def beyond(self, places: Sequence[int]) -> "list[Setting]":
        """All settings two steps away in one knob at `places`."""
        return [
            Setting(self.knobs, (*self.values[:place], value, *self.values[place + 1 :]))
            for place in places
            for value in self.knobs[place].two_steps_away(self.values[place])
        ]


@dataclass
class Climbed:
    """The result of a climb.

    Attributes:
      best: the setting with the highest figure.
      figure: the measured figure of `best`.
      tried: every measured setting, in order, with its figure; 0 if below the floor.
    """

    best: Setting
    figure: float
    tried: dict[tuple[float, ...], float] = field(default_factory=dict)


def climb(
    knobs: Sequence[Knob],
    pairs: Sequence[Sequence[str]],
    measure: Callable[[Setting, float], float | None],
    *,
    left: Callable[[int], None] = lambda _: None,
    gain: float = 0.05,
    rounds: int = 2,
) -> Climbed:
    """Moves to a better setting, one step or two away, as long as there is one.

    Args:
      knobs: all knobs; a knob in no pair keeps its start value.
      pairs: the names of the knobs that change together, one pair after another.
      measure: (setting, floor) -> the setting's figure; higher is better. It is 0 if the figure is
          not above `floor`, because finding that out is cheaper than measuring the figure. None
          means that the setting was not completely measured, and ends the climb.
      left: called before each setting with the number of settings left to measure, including this
          one, if none is better.
      gain: the share by which a setting must be better; a smaller gain may be noise.
      rounds: the largest number of rounds; the climb ends earlier if a round changes nothing.
    """
    now = Setting.start(knobs)
    found = Climbed(now, 0.0)
    names = [knob.name for knob in knobs]
    places = [[names.index(name) for name in pair] for pair in pairs]
    left(1 + sum(len(_next(found, each)) for each in places))
    figure = measure(now, 0.0)
    if figure is None:
        return found
    found.figure = found.tried[now.values] = figure
    try:
        for _ in range(rounds):
            before = found.best
            for pair, others in zip(places, _rests(places), strict=True):
                while _step(found, pair, others, measure, left, gain):
                    pass
            if found.best == before:
                break
    except _EndedError:
        pass
    return found


class _EndedError(Exception):
    """A setting was not completely measured."""


def _rests(pairs: Sequence[Places]) -> list[Sequence[Places]]:
    return [pairs[place + 1 :] for place in range(len(pairs))]


def _next(found: Climbed, places: Places) -> list[Setting]:
    """The settings near the best one that have not been tried."""
    beside = [*found.best.around(places), *found.best.beyond(places)]
    return [setting for setting in beside if setting.values not in found.tried]


def _step(
    found: Climbed,
    places: Places,
    others: Sequence[Places],
    measure: Callable[[Setting, float], float | None],
    left: Callable[[int], None],
    gain: float,
) -> bool:
    """Moves to the first better setting, one step or two away; returns False if there is none.

    Two steps may lead across a plateau or past a noisy figure. As long as all figures are 0, a
    single knob moves to the next setting.
    """
    beside = _next(found, places)
    later = sum(len(_next(found, each)) for each in others)
    for number, setting in enumerate(beside):
        floor = found.figure * (1 + gain)
        left(len(beside) - number + later)
        figure = measure(setting, floor)
        if figure is None:
            raise _EndedError
        found.tried[setting.values] = figure
        if figure > floor or (found.figure == 0 and len(places) == 1):
            found.best, found.figure = setting, figure
            return True
    return False
