"""Models of other tests and of the zoo, in the registry's form."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from colcast.zoo import wide
from colcast.zoo.papers import PAPERS, PaperModel, ensure
from colcast.zoo.registry import MODELS as ZOO

from . import examples, plain, ranker
from ._model import Expected, Random, RankingModel, Row

INDEPENDENT, LENGTH = Expected.INDEPENDENT, Expected.LENGTH
_STEPS_OF_A_USER = {"din": ("user_behaviours",)}
TINY = 0.001  # scale of the papers' tables


def _plain(name: str, expected: Expected, why: str, **more: Any) -> RankingModel:
    build, signature = plain.MODELS[name]

    def row(random: Random) -> Row:
        columns = plain.request(name, 1, int(random.integers(1 << 30)))
        row = {feature: column.ravel().tolist() for feature, column in columns.items()}
        if "user_history" in row:
            row["user_history"] = row["user_history"][: int(random.integers(1, 6))]
        return row

    return RankingModel(
        f"plain_{name}",
        build,
        {},
        expected,
        why,
        row=row,
        signature=signature,
        parses=False,
        **more,
    )


PLAIN = [
    _plain("functional", LENGTH, "a mean over a list that has no length"),
    _plain("archive", INDEPENDENT, "an endpoint of an archive"),
]


def _ranker(name: str, masked: bool, expected: Expected, why: str) -> RankingModel:
    def row(random: Random) -> Row:
        words = ["red", "green", "blue", "unheard of"]
        return {
            "user_age": [int(random.integers(18, 80))],
            "user_words": [words[i] for i in random.integers(0, 4, random.integers(0, 6))],
            **_as_lists(ranker.ITEMS[random.integers(len(ranker.ITEMS))]),
        }

    def build(folder: Path) -> None:
        ranker.save(folder, masked)

    own = ("user_words",) if masked else ()
    return RankingModel(name, build, ranker.SPEC, expected, why, row=row, own_length=own)


def _zoo(name: str, base_path: Callable[[Path], Path], draw: Any, **more: Any) -> RankingModel:
    def build(folder: Path) -> None:
        shutil.copytree(base_path(folder.parent / "zoo") / "1", folder)

    def row(random: Random) -> Row:
        user, items = draw(int(random.integers(1 << 30)))
        return _as_lists(user | items[0])

    return RankingModel(f"zoo_{name}", build, {}, INDEPENDENT, "of the zoo", row=row, **more)


def _paper(paper: PaperModel) -> RankingModel:
    return _zoo(
        paper.name,
        lambda folder: ensure(paper, TINY, folder),
        lambda seed: paper.request(1, seed, TINY),
        users_per_run="one" if paper.name in ("din", "dien") else "many",
        own_length=_STEPS_OF_A_USER.get(paper.name, ()),
    )


def _wide(sizes: wide.Wide) -> RankingModel:
    return _zoo(
        sizes.name,
        lambda folder: wide.ensure(sizes, folder),
        lambda seed: next(wide.requests(sizes, 1, seed)),
    )


def _as_lists(row: Row) -> Row:
    return {name: value if isinstance(value, list) else [value] for name, value in row.items()}


SMALL_WIDE = wide.Wide("small_wide", user_features=6, item_features=6, hidden=(1024, 64))

MODELS = [
    *examples.MODELS,
    *PLAIN,
    _ranker("late_ranker", False, LENGTH, "a sum over padded words"),
    _ranker("late_ranker_masked", True, INDEPENDENT, "user and item towers"),
    _wide(SMALL_WIDE),
    _wide(wide.WIDE),
    _wide(wide.USER_HEAVY),
    *(_paper(paper) for paper in PAPERS.values()),
    _zoo(
        "movielens",
        lambda _: ZOO["movielens"].saved_model(),
        lambda seed: ZOO["movielens"].requests([1], seed % 900)[0],
        own_length=("movie_genres", "movie_title", "user_liked"),
    ),
]
