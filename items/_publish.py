"""Publishes files and folders completely or not at all, even if the builder is killed."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from colcast.items._container import ItemTableError, Tensor, write_container

_DELTA = "delta-{:06}.safetensors"
_WORK = ".tmp-"  # readers ignore names that begin with a dot


def versions(folder: Path) -> list[int]:
    """The numbers of the versions in a table's folder, in ascending order."""
    if not folder.is_dir():
        return []
    named = (one for one in folder.iterdir() if one.name.isascii() and one.name.isdecimal())
    return sorted(int(one.name) for one in named if one.is_dir())


def newest(folder: Path) -> Path:
    """The folder of the newest version; ItemTableError if there is none."""
    found = versions(folder)
    if not found:
        raise ItemTableError(f"{folder} has no table: expected a subfolder named by a number")
    return folder / str(found[-1])


def deltas(folder: Path) -> list[Path]:
    """The deltas of a folder in order; ItemTableError if a number is missing."""
    paths = sorted(folder.glob("delta-*.safetensors"))
    for number, path in enumerate(paths, 1):
        if path.name != _DELTA.format(number):
            raise ItemTableError(f"{path}: expected {_DELTA.format(number)} before it")
    return paths


def publish_delta(
    folder: Path,
    work: Path,
    before: int,
    file_format: str,
    metadata: Mapping[str, str],
    tensors: Iterable[Tensor],
) -> Path:
    """Writes a delta in a work folder and publishes it in `folder`, which has `before` deltas."""
    target = folder / _DELTA.format(before + 1)
    numbered = {**metadata, "sequence": str(before + 1)}
    write_container(work / target.name, file_format, numbered, tensors)
    publish(work / target.name, target)
    return target


@contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """A temporary folder in `parent` that readers ignore.

    A running builder holds its folder's lock; the next builder removes folders that nobody locks.
    """
    parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        with _locked(parent):
            _remove_abandoned(parent)
            folder = Path(tempfile.mkdtemp(prefix=_WORK, dir=parent))
            held.enter_context(_locked(folder))
        held.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


def publish(finished: Path, target: Path) -> None:
    """Renames a finished file or folder, whose files have been synced, to its final name."""
    if finished.is_dir():
        _sync(finished)
    with _locked(target.parent):
        if target.exists():
            raise ItemTableError(f"{target} exists already")
        finished.rename(target)
    _sync(target.parent)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the folder's lock, except on network file systems that have no locks."""
    with _opened(folder) as handle:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_WORK}*"):
        with suppress(OSError), _opened(folder) as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


def _sync(folder: Path) -> None:
    """Syncs the folder's entries to disk."""
    with _opened(folder) as handle:
        os.fsync(handle)
