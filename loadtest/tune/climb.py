"""Hill climbing over a few knobs of a server, pair by pair.

DeepRecSys (Gupta et al., ISCA 2020) climbs over one knob, the rows of a slice: it starts at the
smallest value and goes up until the throughput falls. Here two knobs change together, because the
best value of one depends on the other: more workers need fewer threads each, and larger batches
need different slices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product


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

    def near(self, names: Sequence[str]) -> "list[Setting]":
        """The settings one step away in these knobs, fewer steps first; then two steps in one."""
        choices = [(-2, -1, 0, 1, 2) if knob.name in names else (0,) for knob in self.knobs]

        def order(steps: tuple[int, ...]) -> tuple[int, int]:
            return max(map(abs, steps)), sum(map(abs, steps))

        moves = filter(lambda steps: order(steps) in ((1, 1), (1, 2), (2, 2)), product(*choices))
        found = []
        for steps in sorted(moves, key=order):
            at = [
                (knob, knob.values.index(value) + step)
                for knob, value, step in zip(self.knobs, self.values, steps, strict=True)
            ]
            if all(0 <= place < len(knob.values) for knob, place in at):
                found.append(Setting(self.knobs, tuple(knob.values[place] for knob, place in at)))
        return found


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


Measure = Callable[[Setting, float], float | None]
"""(setting, floor) -> the setting's figure; higher is better.

It is 0 if the figure is not above `floor`, because finding that out is cheaper than measuring the
figure. None means that the setting was not completely measured, and ends the climb.
"""


def climb(
    knobs: Sequence[Knob],
    pairs: Sequence[Sequence[str]],
    measure: Measure,
    *,
    gain: float = 0.05,
    rounds: int = 2,
) -> Climbed:
    """Moves to a better setting, one step or two away, as long as there is one.

    Args:
      knobs: all knobs; a knob in no pair keeps its start value.
      pairs: the names of the knobs that change together, one pair after another.
      measure: measures a setting.
      gain: the share by which a setting must be better; a smaller gain may be noise.
      rounds: the largest number of rounds; the climb ends earlier if a round changes nothing.
    """
    found = Climbed(Setting.start(knobs), 0.0)
    figure = measure(found.best, 0.0)
    if figure is None:
        return found
    found.figure = found.tried[found.best.values] = figure
    for _ in range(rounds):
        before = found.best
        for pair in pairs:
            better: bool | None = True
            while better:
                better = _step(found, pair, measure, gain)
            if better is None:
                return found
        if found.best == before:
            break
    return found


def _step(found: Climbed, pair: Sequence[str], measure: Measure, gain: float) -> bool | None:
    """Moves to the first better setting; False if there is none, None if the climb must end.

    Two steps may lead across a plateau or past a noisy figure. As long as all figures are 0, a
    single knob moves to the next setting.
    """
    for setting in found.best.near(pair):
        if setting.values in found.tried:
            continue
        floor = found.figure * (1 + gain)
        figure = measure(setting, floor)
        if figure is None:
            return None
        found.tried[setting.values] = figure
        if figure > floor or (found.figure == 0 and len(pair) == 1):
            found.best, found.figure = setting, figure
            return True
    return False
