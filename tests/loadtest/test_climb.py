"""Hill climbing, on hills whose top is known."""

from collections.abc import Callable

import pytest
from colcast.loadtest.tune.climb import Climbed, Knob, Setting, climb

STEPS = (1, 2, 4, 8, 16, 32)
KNOBS = [Knob("workers", "--num_workers={}", STEPS, 1), Knob("rows", "--max_rows={}", STEPS, 32)]


def climbed(figure: Callable[[int, int], float], **options: float) -> Climbed:
    def measure(setting: Setting, floor: float) -> float:
        reached = figure(*setting.values)
        return reached if reached > floor else 0.0

    return climb(KNOBS, [("workers", "rows")], measure, **options)


def hill(workers: int, rows: int) -> float:
    """Highest at 8 workers and 4 rows."""
    return 100.0 - 9 * abs(STEPS.index(workers) - 3) - 9 * abs(STEPS.index(rows) - 2)


def test_the_top_is_found():
    found = climbed(hill)
    assert found.best.values == (8, 4)
    assert found.figure == 100


def test_knobs_that_depend_on_each_other():
    def ridge(workers: int, rows: int) -> float:
        return 100.0 + 10 * STEPS.index(workers) if workers * rows <= 32 else 50.0

    assert climbed(ridge).best.values == (32, 1)


def test_a_plateau_of_one_step_is_no_top():
    figures = {1: 10, 2: 20, 4: 20, 8: 40, 16: 30, 32: 30}
    assert climbed(lambda workers, rows: figures[workers]).best.values == (8, 32)


def test_less_than_the_gain_is_noise():
    found = climbed(lambda workers, rows: 100 + 0.01 * workers)
    assert found.best.values == (1, 32)
    assert climbed(lambda workers, rows: 100 + 0.01 * workers, gain=0).best.values == (32, 32)


def test_nothing_is_measured_twice():
    seen: list[tuple[int, ...]] = []

    def measure(setting: Setting, floor: float) -> float:
        seen.append(setting.values)
        return hill(*setting.values)

    found = climb(KNOBS, [("workers", "rows")], measure)
    assert len(seen) == len(set(seen)) == len(found.tried)


def test_a_knob_in_no_pair_stays():
    found = climb(KNOBS, [("workers",)], lambda setting, _: hill(*setting.values))
    assert found.best.values == (8, 32)


def test_a_start_that_reaches_nothing():
    found = climbed(lambda workers, rows: 0.0 if rows == 32 else 10.0)
    assert found.best.values == (1, 16)
    assert found.figure == 10


def test_a_single_knob_goes_on_until_something_is_reached():
    found = climb(KNOBS, [("workers",)], lambda setting, _: float(setting.values[0] == 16))
    assert found.best.values == (16, 32)
    assert climb(KNOBS, [("workers",)], lambda *_: 0.0).figure == 0


def test_flags_and_words():
    start = Setting.start(KNOBS)
    assert start.flags == ["--num_workers=1", "--max_rows=32"]
    assert str(start) == "workers 1, rows 32"


@pytest.mark.parametrize(("value", "beside"), [(1, [1, 2]), (4, [2, 4, 8]), (32, [16, 32])])
def test_neighbours(value: float, beside: list[float]):
    assert KNOBS[0].neighbours(value) == beside


@pytest.mark.parametrize(("value", "behind"), [(1, [4]), (4, [1, 16]), (32, [8])])
def test_values_behind_the_neighbours(value: float, behind: list[float]):
    assert KNOBS[0].two_steps_away(value) == behind


def test_a_setting_that_is_not_measured_to_its_end_ends_the_climb():
    measured: list[tuple[float, ...]] = []

    def measure(setting: Setting, floor: float) -> float | None:
        measured.append(setting.values)
        return hill(*setting.values) if len(measured) < 4 else None

    found = climb(KNOBS, [("workers", "rows")], measure)
    assert len(measured) == 4
    assert list(found.tried) == measured[:3]
    assert found.figure == max(found.tried.values())


def test_how_many_settings_are_left_counts_down_where_none_is_better():
    left: list[int] = []
    figures = iter([100.0])
    pairs = [("workers",), ("rows",)]
    climb(KNOBS, pairs, lambda *_: next(figures, 0.0), left=left.append)
    assert left == [5, 4, 3, 2, 1]
