"""kill -9 at any step of a builder leaves no incomplete table, and the next builder cleans up."""

import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pandas as pd
import pytest
from colcast.items import ItemTable, build_table

from .records import declared, model

_SCRIPT = Path(__file__).with_name("killed_builder.py")
_ROWS = pd.DataFrame({"item_id": [1], "title": ["Dune"]})
_NOTHING = "nothing"
_TABLE = "3 ['Alien', 'Brazil', 'Cube']"
_WITH_DELTA = "2 ['new', None, 'Cube']"


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A folder in which builders were killed, and the state that a reader found after each step."""
    folder = tmp_path_factory.mktemp("killed")
    model(folder / "model", title=declared(dtype="string"))
    ran = subprocess.run(
        [sys.executable, str(_SCRIPT), str(folder)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found = [line.partition(" ")[2] for line in ran.stdout.splitlines()]
    return folder, found


def test_a_reader_finds_all_of_it_or_nothing(killed):
    _, found = killed
    assert [what for what, _ in groupby(found)] == [_NOTHING, _TABLE, _WITH_DELTA]
    assert len(found) > 30, "a build has more steps than that"


def test_the_next_builder_removes_leftovers(killed):
    folder, found = killed
    last = found.index(_TABLE) - 1
    left = folder / str(last)
    assert [name for name in os.listdir(left) if name.startswith(".tmp-")]
    build_table(folder / "model", _ROWS, key="item_id", output=left)
    assert os.listdir(left) == ["1"]
    assert ItemTable(left).get(1) == {"title": b"Dune"}


def test_files_of_a_running_builder_are_kept(tmp_path):
    record = model(tmp_path / "model", title=declared(dtype="string"))
    output = tmp_path / "t"

    def frames():
        yield _ROWS
        build_table(record, _ROWS, key="item_id", output=output)
        yield _ROWS.assign(item_id=2)

    build_table(record, frames(), key="item_id", output=output)
    assert sorted(os.listdir(output)) == ["1", "2"]
    assert len(ItemTable(output, 2)) == 2
