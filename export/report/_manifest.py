"""The list of files in the export's record: servers load a version only once all of them exist."""

import zlib
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20


def manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """The size of each file on which answers depend, and its checksum unless it has variables.

    TensorFlow itself checks variables when it restores them, and they may be trained further. Files
    that people add, such as warm-up requests, are not listed.
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
