"""Runs scripts in environments whose packages `.venv` lacks."""

import os
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parents[1]


class Environment:
    """A virtual environment in the repository, which may not exist."""

    def __init__(self, name: str) -> None:
        self._folder = _ROOT / name

    def package(self, name: str) -> Path | None:
        """The folder of an installed package; None if it or the environment does not exist."""
        return next(iter(self._folder.glob(f"lib/*/site-packages/{name}")), None)

    def run(self, script: str, *arguments: object) -> None:
        """Runs a script of tests/; fails if the script fails."""
        command = [self._folder / "bin" / "python", _ROOT / "tests" / script, *arguments]
        quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, env=quiet, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]


ESTIMATOR = Environment(".venv-estimator")  # TensorFlow 2.15, Estimators, TF-DF
JAX = Environment(".venv-jax")
