"""`colcast tune` on the native server, and hill climbing with known maxima."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from colcast.cli.main import main
from colcast.loadtest.measure.open_loop import Schedule
from colcast.loadtest.measure.recording import Recording
from colcast.loadtest.tune.climb import Climbed, Knob, Setting, climb
from colcast.loadtest.tune.graphs import rewrite_sets
from colcast.loadtest.tune.tuning import knobs
from colcast.server import ServerProcess

from .test_search import recording


def tune(exported: Path, folder: Path, *options: str) -> int:
    """Runs a short `colcast tune`."""
    command = ["tune", "--model", "small", "--model-base-path", str(exported)]
    command += ["--sizes", "20", "--distinct", "4", "--seconds", "0.2", "--output", str(folder)]
    return main([*command, *options])


@pytest.fixture(autouse=True)
def two_knobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduces the knobs to one with two values."""
    few = [Knob("workers", "--num_workers={}", (1, 2), 2)], [("workers",)]
    monkeypatch.setattr("colcast.loadtest.tune.tuning.knobs", lambda *_: few)


class UpToSixty:
    """A load generator whose windows meet the target up to 60 calls, on any machine."""

    def __init__(self, target: str) -> None:
        assert target

    def run(self, _requests: object, schedule: Schedule, **_: object) -> Recording:
        return recording(*[5.0 if len(schedule.due) <= 60 else 5000.0] * 20)


def test_its_output_starts_a_server(
    exported: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("colcast.loadtest.tune.tuning.OpenLoop", UpToSixty)
    assert tune(exported, tmp_path, "--sla-p95", "2s") == 0
    printed = capsys.readouterr().out
    assert "start: workers 2" in printed
    assert "2 settings tried" in printed
    found = json.loads((tmp_path / "tune.json").read_text())
    assert found["rate"] > 0
    assert {tuple(one["flags"]) for one in found["tried"]} == {
        ("--num_workers=1",),
        ("--num_workers=2",),
    }
    with ServerProcess("small", exported, [f"--flagfile={tmp_path / 'server.flags'}"]) as server:
        assert server.target


def test_no_setting_meets_the_target(exported: Path, tmp_path: Path, capsys):
    assert tune(exported, tmp_path, "--sla-p95", "0.001ms", "--json") == 1
    printed = capsys.readouterr()
    assert "no setting meets p95 <= 0.001 ms" in printed.err
    assert json.loads(printed.out) == json.loads((tmp_path / "tune.json").read_text())


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        ([], "give one target", 2),
        (["--sla-p95", "25ms", "--sla-p99", "30ms"], "give one target", 2),
        (["--sla-p95", "25ms", "--format", "late,example"], "one format", 2),
        (["--sla-p95", "25ms", "--traffic", "zoo:nobody"], "the zoo has no 'nobody'", 2),
        (["--sla-p95", "25ms", "--flag=--nonsense"], "--nonsense", 1),
    ],
)
def test_wrong_options_are_reported(exported: Path, tmp_path: Path, capsys, options, words, code):
    assert tune(exported, tmp_path, *options) == code
    assert words in capsys.readouterr().err


def test_pieces_and_joining_are_tuned_together(exported: Path):
    turned, pairs = knobs(2)
    assert ("ms per slice", "join") in pairs
    pieces, join = turned[2:]
    assert (pieces.start, join.start) == (2, 1)
    flags = Setting((pieces, join), (0.5, 0)).flags
    with ServerProcess("small", exported, flags) as server:
        assert server.target


class Interrupted(UpToSixty):
    """Raises an interrupt when the second setting is measured."""

    servers: ClassVar[set[str]] = set()

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.servers.add(target)

    def run(self, requests: object, schedule: Schedule, **_: object) -> Recording:
        if len(self.servers) > 1:
            raise KeyboardInterrupt
        return super().run(requests, schedule)


def test_an_interrupted_search_writes_what_it_has(
    exported: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("colcast.loadtest.tune.tuning.OpenLoop", Interrupted)
    monkeypatch.setattr(Interrupted, "servers", set())
    assert tune(exported, tmp_path, "--sla-p95", "2s") == 130
    printed = capsys.readouterr().out
    assert "the search was ended early by an interrupt" in printed
    assert "one setting tried: workers 2: " in printed
    found = json.loads((tmp_path / "tune.json").read_text())
    assert [one["flags"] for one in found["tried"]] == [["--num_workers=2"]]
    assert found["best"] is None
    assert [one["flags"] for one in found["unfinished"]] == [["--num_workers=1"]]
    assert not (tmp_path / "server.flags").exists()


def test_a_search_ends_with_its_budget(
    exported: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("colcast.loadtest.tune.tuning.OpenLoop", UpToSixty)
    assert tune(exported, tmp_path, "--sla-p95", "2s", "--max-minutes", "0.0001") == 0
    printed = capsys.readouterr().out
    assert "the search was ended early by --max-minutes" in printed
    found = json.loads((tmp_path / "tune.json").read_text())
    assert found["ended_by"] == "--max-minutes"
    assert found["rate"] > 0
    assert len(found["tried"]) == 1
    assert printed.startswith("workers 2\n  50 per second, p95 5.0 ms: holds\n")


STEPS = (1, 2, 4, 8, 16, 32)
KNOBS = [Knob("workers", "--num_workers={}", STEPS, 1), Knob("rows", "--max_rows={}", STEPS, 32)]


def climbed(figure: Callable[[int, int], float], **options: float) -> Climbed:
    def measure(setting: Setting, floor: float) -> float:
        reached = figure(*setting.values)
        return reached if reached > floor else 0.0

    return climb(KNOBS, [("workers", "rows")], measure, **options)


def hill(workers: int, rows: int) -> float:
    """The figure of a setting; it is highest at 8 workers and 4 rows."""
    return 100.0 - 9 * abs(STEPS.index(workers) - 3) - 9 * abs(STEPS.index(rows) - 2)


def test_the_peak_is_found():
    found = climbed(hill)
    assert found.best.values == (8, 4)
    assert found.figure == 100


def test_knobs_that_depend_on_each_other():
    def ridge(workers: int, rows: int) -> float:
        return 100.0 + 10 * STEPS.index(workers) if workers * rows <= 32 else 50.0

    assert climbed(ridge).best.values == (32, 1)


def test_a_plateau_of_one_step_is_no_peak():
    figures = {1: 10, 2: 20, 4: 20, 8: 40, 16: 30, 32: 30}
    assert climbed(lambda workers, rows: figures[workers]).best.values == (8, 32)


def test_less_than_the_gain_is_noise():
    found = climbed(lambda workers, rows: 100 + 0.01 * workers)
    assert found.best.values == (1, 32)
    assert climbed(lambda workers, rows: 100 + 0.01 * workers, gain=0).best.values == (32, 32)


def test_a_setting_that_is_not_fully_measured_ends_the_climb():
    measured: list[tuple[float, ...]] = []

    def measure(setting: Setting, floor: float) -> float | None:
        measured.append(setting.values)
        return hill(*setting.values) if len(measured) < 4 else None

    found = climb(KNOBS, [("workers", "rows")], measure)
    assert len(measured) == 4
    assert list(found.tried) == measured[:3]
    assert found.figure == max(found.tried.values())


def test_int8_tables_are_tried_only_if_the_export_wrote_them(tmp_path: Path):
    products = ("bfloat16 products",)
    assert [*rewrite_sets(tmp_path)] == [products]
    (tmp_path / "int8").mkdir()
    assert [*rewrite_sets(tmp_path)] == [("int8 tables", *products), ("int8 tables",), products]
