"""`colcast bench`: the rows of its table, their measurement, its output and its files."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from colcast.bench import table
from colcast.bench.measure import lines, measure
from colcast.bench.table import TABLE, groups, selected
from colcast.cli.main import main
from colcast.loadtest.measure.recording import Call, Recording
from colcast.loadtest.measure.run import Options
from colcast.loadtest.measure.series import Series, Target
from colcast.loadtest.send.connection import Request
from colcast.zoo import wide
from colcast.zoo.registry import MODELS, ZooModel

SMALL = wide.Wide(name="small", user_features=7, item_features=5, hidden=(8,))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shrinks the model `wide` to a few features."""

    def requests(sizes: Sequence[int], seed: int) -> list[Any]:
        return [next(wide.requests(SMALL, n, 10_000 * seed + i)) for i, n in enumerate(sizes)]

    model = ZooModel(lambda: wide.ensure(SMALL, tmp_path / "zoo"), requests)
    monkeypatch.setitem(MODELS, "wide", model)


def recording(milliseconds: float) -> Recording:
    call = Call(0.0, 0.0, 0.25, "OK", 20, 100, 10)
    return Recording([call], [], "", 0.5, milliseconds / 1000)


def test_a_line_has_medians_and_the_share_of_the_same_round():
    told: list[str] = []
    rounds = {"a": list(map(recording, (2, 4, 100))), "b": list(map(recording, (1, 4, 25)))}
    first, second = lines("formats/x, N = 20", rounds, [0.0, float("nan")], told.append)
    assert (first.cpu_ms, second.cpu_ms) == (4, 4)
    assert second.share == (0.5, 0.25, 1)
    assert (second.per_second, second.p50_ms, second.request_bytes) == (2, 250, 100)
    assert told[0].startswith("formats/x, N = 20")
    assert re.split(r"\s{2,}", told[1].strip()) == [
        *("b", "4.000", "0.50 (0.25 to 1.00)", "2", "250.0", "100", "-")
    ]


def test_failed_calls_end_it():
    series = [Series(Target("", "127.0.0.1:1"), "late", [Request(b"", 1)])]
    options = Options(windows=1, window_calls=1)
    with pytest.raises(ValueError, match="late: calls failed: UNAVAILABLE: "):
        measure("formats/x", series, 1, {}, options, lambda _: None)


def test_a_part_or_a_group_is_selected_in_the_tables_order():
    assert [row.send for row in selected(["formats/wide"])] == [
        *("example", "repeated", "columnar", "late"),
    ]
    names = [name for name, _ in groups(selected(["states", "formats"]))]
    assert names == ["formats/movielens", "formats/wide", "states/wide"]


def test_every_row_names_its_group_once_and_a_model_there_is():
    assert len({(row.name, row.title) for row in TABLE}) == len(TABLE)
    assert set(table.PAPERS) <= set(MODELS)
    assert set(table.USUAL) == {row.part for row in TABLE} - {"graphs", "papers", "text"}
    for name, of_group in groups(TABLE):
        assert len({row.sizes for row in of_group}) == 1, name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rounds", "0"], "Invalid value for '--rounds': 0 is not in the range x>=1"),
        (["--calls", "0"], "Invalid value for '--calls': 0 is not in the range x>=1"),
        (["--sizes", "abc"], "Invalid value for '--sizes': 'abc': expected whole numbers"),
        (["none"], "no rows 'none'; expected formats, formats/movielens, formats/wide, states"),
    ],
)
def test_a_wrong_command_line_is_refused(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["bench", *options, "--output", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"colcast bench: {message}")
    assert not (tmp_path / "out").exists()


def test_every_kind_of_row_is_measured_and_written(
    small: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Covers servers with and without states, item tables, two protocols, and encoding."""
    parts = ["states", "keys", "protocols", "encoding"]
    effort = ["--sizes", "5", "--rounds", "1", "--calls", "4"]
    assert main(["bench", *parts, *effort, "--json", "--output", str(tmp_path)]) == 0
    found = {(line["group"], line["title"]): line for line in json.loads(capsys.readouterr().out)}
    rows = selected(parts)
    assert [*found] == [(f"{row.name}, N = 5", row.title) for row in rows]
    assert all(line["cpu_ms"] > 0 and line["request_bytes"] > 0 for line in found.values())
    states = [line for (group, _), line in found.items() if group.startswith(("states", "keys"))]
    assert all(line["difference"] < 1e-5 for line in states)
    sent, keyed = (line["request_bytes"] for line in states[-2:])
    assert keyed < sent
    document = (tmp_path / "bench.md").read_text()
    assert all(row.title in document for row in rows)
    written = json.loads((tmp_path / "bench.json").read_text())
    assert len(written["lines"]) == len(rows)
