"""A kept model is made once, again when its code or settings change, and never half."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from colcast.zoo.cache import cached

ME = (sys.modules[__name__],)


def maker(runs: list[Path]) -> Any:
    def make(folder: Path) -> dict[str, Any]:
        runs.append(folder)
        folder.mkdir(parents=True)
        (folder / "saved_model.pb").write_text(f"run {len(runs)}")
        return {"run": len(runs)}

    return make


def test_it_is_made_once(tmp_path: Path):
    runs: list[Path] = []
    assert [cached(tmp_path / "m", ME, maker(runs)) for _ in range(2)] == [{"run": 1}] * 2
    assert (tmp_path / "m" / "1" / "saved_model.pb").read_text() == "run 1"


def test_other_settings_make_it_again(tmp_path: Path):
    runs: list[Path] = []
    for settings in ("16 wide", "32 wide"):
        cached(tmp_path / "m", ME, maker(runs), settings)
    assert (tmp_path / "m" / "1" / "saved_model.pb").read_text() == "run 2"


def test_a_run_that_fails_half_way_leaves_nothing_to_serve(tmp_path: Path):
    def fail(folder: Path) -> dict[str, Any]:
        maker([])(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached(tmp_path / "m", ME, fail)
    assert not (tmp_path / "m").exists()
    assert cached(tmp_path / "m", ME, maker([])) == {"run": 1}


def test_another_program_that_makes_it_is_waited_for(tmp_path: Path):
    runs: list[Path] = []
    begun, ended = threading.Event(), threading.Event()

    def slow(folder: Path) -> dict[str, Any]:
        begun.set()
        assert not ended.wait(0.2), "the other one went on"
        return dict(maker(runs)(folder))

    def other() -> None:
        begun.wait(60)
        cached(tmp_path / "m", ME, maker(runs))
        ended.set()

    with ThreadPoolExecutor() as pool:
        waits = pool.submit(other)
        assert cached(tmp_path / "m", ME, slow) == {"run": 1}
        waits.result()
    assert len(runs) == 1
