"""BM25, which ranks by shared words: the baseline for the models."""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

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
