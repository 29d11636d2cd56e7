"""The list of files in the record: servers load a version once all of them are there."""

import zlib
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20


def manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """The size of each file that answers depend on, and its checksum unless it is of variables.

    TensorFlow checks variables as it restores them, and they may be trained further. What people
    add by hand, warm-up requests say, is not listed.
    """
    files = [folder / "saved_model.pb"]
    for part in ("assets", "variables"):
        files += sorted(file for file in (folder / part).rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): _listed(folder, file) for file in files}


def _listed(folder: Path, file: Path) -> dict[str, Any]:
    size = {"bytes": file.stat().st_size}
    if file.is_relative_to(folder / "variables"):
        return size
    return size | {"crc32": _crc32(file)}


def _crc32(file: Path) -> str:
    checksum = 0
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return f"{checksum:08x}"
