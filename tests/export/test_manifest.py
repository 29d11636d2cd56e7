"""The files that a record lists, and servers that wait for them."""

import json
import shutil
import zlib
from pathlib import Path

import pytest
from colcast.export import export_saved_model
from colcast.server import ServerProcess

from ..server.conftest import Stubs
from ..waiting import wait_until

RECORD = Path("assets.extra", "colcast.json")


@pytest.fixture(scope="module", name="exported")
def _exported(embedded, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "1"
    export_saved_model(embedded, folder, warmup=[2])
    return folder


def test_graph_and_assets_are_listed_and_what_people_add_or_train_is_not(exported):
    files = json.loads((exported / RECORD).read_text())["files"]
    assets = [file for file in (exported / "assets").rglob("*") if file.is_file()]
    names = {file.relative_to(exported).as_posix() for file in assets}
    assert set(files) == names | {"saved_model.pb"}
    for name, listed in files.items():
        content = (exported / name).read_bytes()
        assert listed["bytes"] == len(content)
        assert listed["crc32"] == f"{zlib.crc32(content):08x}"


@pytest.mark.parametrize("damage", ["not there", "half there", "its space is taken"])
def test_a_vocabulary_that_is_not_whole_is_waited_for(exported, tmp_path, damage) -> None:
    """In a copy of files in any order; version 1 serves until version 2 is whole."""
    shutil.copytree(exported, tmp_path / "model" / "1")
    shutil.copytree(exported, tmp_path / "2")
    (vocabulary,) = (tmp_path / "2" / "assets").iterdir()
    whole = vocabulary.read_bytes()
    half = whole[: len(whole) // 2]
    vocabulary.write_bytes(half.ljust(len(whole), b"\0") if "space" in damage else half)
    if damage == "not there":
        vocabulary.unlink()
    with ServerProcess("m", tmp_path / "model", ["--file_system_poll_wait_seconds=0.05"]) as server:
        stubs = Stubs(server.target, model="m")
        (tmp_path / "2").rename(tmp_path / "model" / "2")
        wait_until(lambda: stubs.states().get(2, ("", 0, ""))[1] != 0)
        assert f"2/assets/{vocabulary.name}" in stubs.states()[2][2]
        assert "the version is still being copied" in stubs.states()[2][2]
        assert stubs.states()[1][0] == "AVAILABLE"
        (tmp_path / "model" / "2" / "assets" / vocabulary.name).write_bytes(whole)
        wait_until(lambda: stubs.states()[2][0] == "AVAILABLE")


def test_what_comes_to_a_version_that_serves_is_told(exported, tmp_path) -> None:
    shutil.copytree(exported, tmp_path / "model" / "1")
    shutil.move(tmp_path / "model" / "1" / RECORD, tmp_path)
    with ServerProcess("m", tmp_path / "model", ["--file_system_poll_wait_seconds=0.05"]) as server:
        shutil.move(tmp_path / RECORD.name, tmp_path / "model" / "1" / RECORD)
        wait_until(lambda: "version 1 serves as it was loaded: files came" in server.log())
