"""The folder of a report: one page for people, and its figures for programs."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def make_folder(folder: Path) -> None:
    """Makes the folder before anything is sent, so that a failure here loses no results.

    Raises:
      ValueError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--output {folder}: no folder can be made there: {error}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"--output {folder}: nothing can be written there")


def write(folder: Path, values: Mapping[str, Any], page: str) -> list[str]:
    """Writes report.html and report.json; returns their paths."""
    html, figures = folder / "report.html", folder / "report.json"
    html.write_text(page, encoding="utf-8")
    figures.write_text(json.dumps(values, indent=1, allow_nan=False), encoding="utf-8")
    return [str(html), str(figures)]
