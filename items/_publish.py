"""Publishes files and folders completely or not at all, even if the builder is killed."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from colcast.items._container import Tensor, write_container
from colcast.items._errors import ItemTableError

_DELTA = "delta-{:06}.safetensors"
_WORK = ".tmp-"  # readers ignore names that begin with a dot


def versions(folder: Path) -> list[int]:
    """The numbers of the versions in a table's folder, in ascending order."""
    if not folder.is_dir():
        return []
    return sorted(int(one.name) for one in folder.iterdir() if _is_version(one))


def newest(folder: Path) -> Path:
    """The folder of the newest version; ItemTableError if there is none."""
    found = versions(folder)
    if not found:
        raise ItemTableError(f"{folder} has no table: expected a subfolder named by a number")
    return folder / str(found[-1])


def deltas(folder: Path) -> list[Path]:
    """The deltas of a folder in order; ItemTableError if one is missing between them."""
    paths = sorted(folder.glob("delta-*.safetensors"))
    for number, path in enumerate(paths, 1):
        if path.name != _DELTA.format(number):
            raise ItemTableError(f"{path}: expected {_DELTA.format(number)} before it")
    return paths


def publish_delta(
    folder: Path, work: Path, before: int, metadata: Mapping[str, str], tensors: Iterable[Tensor]
) -> Path:
    """Writes a delta in a work folder and publishes it in `folder`, which has `before` deltas.

    Raises:
        ItemTableError: another delta was published in the meantime.
    """
    target = folder / _DELTA.format(before + 1)
    numbered = {**metadata, "created": str(int(time.time())), "sequence": str(before + 1)}
    write_container(work / target.name, numbered, tensors)
    publish(work / target.name, target)
    return target


@contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """A temporary folder in `parent` that readers ignore.

    A running builder holds the folder's lock; the next builder removes the folders of killed ones.
    """
    parent.mkdir(parents=True, exist_ok=True)
    with _locked(parent):
        _remove_abandoned(parent)
        folder = Path(tempfile.mkdtemp(prefix=_WORK, dir=parent))
        lock = _lock(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def publish(finished: Path, target: Path) -> None:
    """Renames a finished file or folder, whose files have been synced, to its final name.

    Raises:
        ItemTableError: the name exists already.
    """
    if finished.is_dir():
        _sync(finished)
    with _locked(target.parent):
        if target.exists():
            raise ItemTableError(f"{target} exists already")
        finished.rename(target)
    _sync(target.parent)


def _is_version(folder: Path) -> bool:
    return folder.name.isascii() and folder.name.isdecimal() and folder.is_dir()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = _lock(folder)
    try:
        yield
    finally:
        os.close(handle)


def _lock(folder: Path) -> int:
    """A file descriptor that holds the lock until it is closed.

    Some network file systems have no locks.
    """
    handle = os.open(folder, os.O_RDONLY)
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_WORK}*"):
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(handle)


def _sync(folder: Path) -> None:
    """Syncs the folder's entries to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
