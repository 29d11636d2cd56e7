"""The list of files in the export's record: servers load a version only once all of them exist."""

import zlib
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20


def manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """The size and checksum of the graph and of each asset.

    Variables are not listed: TensorFlow checks them when it restores them, and they may be trained
    further. Nor are files that people add, such as warm-up requests.
    """
    assets = sorted(file for file in (folder / "assets").rglob("*") if file.is_file())
    return {
        file.relative_to(folder).as_posix(): {"bytes": file.stat().st_size, "crc32": _crc32(file)}
        for file in (folder / "saved_model.pb", *assets)
    }


def _crc32(file: Path) -> str:
    checksum = 0
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return f"{checksum:08x}"
