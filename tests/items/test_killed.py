"""kill -9 at any step of a builder leaves no incomplete table, and the next builder cleans up.

    python tests/items/test_killed.py FOLDER

runs a builder that is killed at each of its steps. A step is an event of Python's audit hooks, such
as opening, renaming or removing a file. Each child builds a table and a delta in FOLDER/STEP, and
kills itself (SIGKILL) at a different step. For each child, it prints the state that a reader finds.
"""

import os
import signal
import subprocess
import sys
from itertools import count, groupby
from pathlib import Path

import pandas as pd
import pytest
from colcast.items import ItemTable, build_delta, build_table

ROWS = pd.DataFrame({"item_id": [7, 9, 11], "title": ["Alien", "Brazil", "Cube"]})
_EVENTS = ("open", "os.", "shutil.", "tempfile.", "fcntl.")
_NOTHING = "nothing"
_TABLE = "3 ['Alien', 'Brazil', 'Cube']"
_WITH_DELTA = "2 ['new', None, 'Cube']"


def build(folder: Path) -> None:
    """Builds a table and then a delta."""
    build_table(folder.parent / "model", ROWS, key="item_id", output=folder)
    build_delta(folder, ROWS.assign(title="new").iloc[:1], delete=[9])


def found(folder: Path) -> str:
    """What a reader finds: nothing, a complete table, or a table with its delta."""
    names = [path.name for path in folder.glob("[!.]*")] if folder.exists() else []
    if not names:
        return _NOTHING
    assert names == ["1"], names
    table = ItemTable(folder)
    table.verify()
    titles = [row and row["title"].decode() for row in map(table.get, ROWS["item_id"])]
    return f"{len(table)} {titles}"


def killed_at(step: int, folder: Path) -> bool:
    """Builds in a child that is killed at a step; returns False if it ends before that step."""
    child = os.fork()
    if child == 0:
        left = step

        def hook(event: str, _: object) -> None:
            nonlocal left
            if event.startswith(_EVENTS) and event != "os.kill":
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        build(folder)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        assert status == 0, f"step {step}: status {status}"
        return False
    assert os.WTERMSIG(status) == signal.SIGKILL
    return True


def main(parent: Path) -> None:
    """Kills a builder at each step in turn, until one ends before its step."""
    build(parent / "first")  # imports modules for the children
    for step in count():
        killed = killed_at(step, parent / str(step))
        print(found(parent / str(step)), flush=True)
        if not killed:
            break


def record(folder):
    from .records import declared, model  # imports TensorFlow, which the builders do not need

    return model(folder, title=declared(dtype="string"))


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A folder in which builders were killed, and the state that a reader found after each step."""
    folder = tmp_path_factory.mktemp("killed")
    record(folder / "model")
    ran = subprocess.run(
        [sys.executable, __file__, str(folder)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return folder, ran.stdout.splitlines()


def test_a_reader_finds_all_of_it_or_nothing(killed):
    _, found = killed
    assert [what for what, _ in groupby(found)] == [_NOTHING, _TABLE, _WITH_DELTA]
    assert len(found) > 30, "a build has more steps than that"


def test_the_next_builder_removes_leftovers(killed):
    folder, found = killed
    last = found.index(_TABLE) - 1
    left = folder / str(last)
    assert [name for name in os.listdir(left) if name.startswith(".tmp-")]
    build_table(folder / "model", ROWS, key="item_id", output=left)
    assert os.listdir(left) == ["1"]
    assert ItemTable(left).get(7) == {"title": b"Alien"}


def test_files_of_a_running_builder_are_kept(tmp_path):
    of_model, output = record(tmp_path / "model"), tmp_path / "t"

    def frames():
        yield ROWS
        build_table(of_model, ROWS, key="item_id", output=output)
        yield ROWS.iloc[:1].assign(item_id=2)

    build_table(of_model, frames(), key="item_id", output=output)
    assert sorted(os.listdir(output)) == ["1", "2"]
    assert len(ItemTable(output, 2)) == 4


if __name__ == "__main__":
    main(Path(sys.argv[1]))
