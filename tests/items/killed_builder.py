"""A builder that is killed at each of its steps; run by test_killed.py.

    python tests/items/killed_builder.py FOLDER

A step is an event of Python's audit hooks, such as opening, renaming or removing a file. Each child
builds a table and a delta in FOLDER/STEP, and kills itself (SIGKILL) at a different step. For each
child, the script prints STEP and the state that a reader then finds.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path

import pandas as pd
from colcast.items import ItemTable, build_delta, build_table

MODEL = "model"
ROWS = {"item_id": [7, 9, 11], "title": ["Alien", "Brazil", "Cube"]}
_EVENTS = ("open", "os.", "shutil.", "tempfile.", "fcntl.")


def build(folder: Path) -> None:
    """Builds a table and then a delta."""
    frame = pd.DataFrame(ROWS)
    build_table(folder.parent / MODEL, frame, key="item_id", output=folder)
    build_delta(folder, frame.assign(title="new").iloc[:1], delete=[9])


def found(folder: Path) -> str:
    """What a reader finds: nothing, a complete table, or a table with its delta."""
    names = [path.name for path in folder.glob("[!.]*")] if folder.exists() else []
    if not names:
        return "nothing"
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


def main() -> None:
    """Kills a builder at each step in turn, until one ends before its step."""
    parent = Path(sys.argv[1])
    build(parent / "first")  # imports modules for the children
    for step in count():
        killed = killed_at(step, parent / str(step))
        print(step, found(parent / str(step)), flush=True)
        if not killed:
            break


if __name__ == "__main__":
    main()
