"""The zoo's models by name, with their folders and requests."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from colcast.zoo import wide
from colcast.zoo.movielens import data, features, train
from colcast.zoo.papers import PAPERS, SCALE, PaperModel, ensure

Row = dict[str, Any]
Request = tuple[Row, list[Row]]  # the user row, and the item rows


@dataclass(frozen=True)
class ZooModel:
    """A model of the zoo.

    Attributes:
      saved_model: makes the model if it is missing, and returns its base path.
      requests: (N of each request, seed) -> one request for each N.
    """

    saved_model: Callable[[], Path]
    requests: Callable[[Sequence[int], int], list[Request]]


def _movielens_path() -> Path:
    train.ensure(train.WORK_DIR)
    return train.WORK_DIR / "model"


def _movielens_requests(sizes: Sequence[int], seed: int) -> list[Request]:
    """Requests of real users by id, from number `seed`; skips users with too few unrated movies."""
    candidates = features.Candidates(data.load(train.WORK_DIR))
    users = cycle(candidates.users[seed % 943 :] + candidates.users[: seed % 943])
    return [_enough(candidates, users, size) for size in sizes]


def _enough(candidates: features.Candidates, users: Iterator[int], size: int) -> Request:
    for _ in candidates.users:
        request = candidates.of(next(users))
        if len(request.items) >= size:
            return request.user_row, request.items[:size]
    raise ValueError(f"no user of MovieLens-100K has {size} unrated movies, only up to 1,662")


def _seeded(saved_model: Callable[[], Path], request: Callable[[int, int], Request]) -> ZooModel:
    """A model whose requests are made from N and a seed, which differs for each request."""

    def requests(sizes: Sequence[int], seed: int) -> list[Request]:
        return [request(size, seed * 1_000_003 + at) for at, size in enumerate(sizes)]

    return ZooModel(saved_model, requests)


def _wide(model: wide.Wide) -> ZooModel:
    return _seeded(
        lambda: wide.ensure(model), lambda size, seed: next(wide.requests(model, size, seed))
    )


def _paper(paper: PaperModel) -> ZooModel:
    return _seeded(lambda: ensure(paper), lambda size, seed: paper.request(size, seed, SCALE))


MODELS: dict[str, ZooModel] = {
    "movielens": ZooModel(_movielens_path, _movielens_requests),
    "wide": _wide(wide.WIDE),
    "user_heavy": _wide(wide.USER_HEAVY),
    **{name: _paper(paper) for name, paper in PAPERS.items()},
}
