"""The fork tool as a command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def fork(tmp_path: Path) -> Tool:
    """A function that runs the tool on `tmp_path/tree`."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fork", "--tree", tmp_path / "tree", *arguments]
        return subprocess.run(
            [str(argument) for argument in command], cwd=ROOT, capture_output=True, text=True
        )

    return run
