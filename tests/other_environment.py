"""Scripts that need packages which `.venv` lacks: they run in an environment of their own."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def package(environment: Path, name: str) -> Path | None:
    """Where a package is installed there; None: the environment was not made."""
    return next(iter(environment.glob(f"lib/*/site-packages/{name}")), None)


def run(environment: Path, script: str, *arguments: object) -> None:
    """Runs a script of tests/, which has to succeed."""
    command = [environment / "bin" / "python", ROOT / "tests" / script, *arguments]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=quiet, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
