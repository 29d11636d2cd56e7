"""Fixtures of the fork's tests: a miniature upstream tree and the tool as a command."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def upstream() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "upstream_tree", Path(__file__).with_name("upstream_tree.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def fork(tmp_path: Path) -> Tool:
    """A function that runs the tool on `tmp_path/tree`."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fork", "--tree", tmp_path / "tree", *arguments]
        return subprocess.run(
            [str(argument) for argument in command], cwd=ROOT, capture_output=True, text=True
        )

    return run
