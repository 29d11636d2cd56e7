"""Scripts that need TensorFlow 2.15, Estimators or TF-DF: they run in .venv-estimator."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / ".venv-estimator"


def package(name: str) -> Path | None:
    """Where a package is installed there; None: `make setup-estimator` was not run."""
    return next(iter(ENVIRONMENT.glob(f"lib/*/site-packages/{name}")), None)


def run(script: str, *arguments: object) -> None:
    """Runs a script of tests/, which has to succeed."""
    command = [ENVIRONMENT / "bin" / "python", ROOT / "tests" / script, *arguments]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
