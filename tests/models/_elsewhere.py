"""Models of other tests and of the zoo, in the registry's form."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from colcast.zoo import wide
from colcast.zoo.papers import PAPERS, PaperModel, ensure
from colcast.zoo.registry import MODELS as ZOO

from . import examples, plain, ranker
from ._model import Expected, Random, RankingModel, Row

INDEPENDENT, INTERACTING, LENGTH = Expected.INDEPENDENT, Expected.INTERACTING, Expected.LENGTH
_STEPS_OF_A_USER = {"din": ("user_behaviours",)}
TINY = 0.001  # scale of the papers' tables


def _example(name: str, user: str, expected: Expected, why: str, **more: Any) -> RankingModel:
    model = examples.MODELS[name]

    def row(random: Random) -> Mapping[str, Any]:
        return model.row(random) if model.row else examples.row_of(model.spec, random)

    return RankingModel(
        f"export_{name}", model.build, model.spec, expected, why, (user,), row, **more
    )


EXAMPLES = [
    _example("nested_functions", "age", INDEPENDENT, "functions of functions"),
    _example("vocabulary_file_and_table", "colors", INDEPENDENT, "tables of words"),
    _example("sparse_combiners", "ids", Expected.REFUSED, "weights beside ids"),
    _example(
        "ragged_partitions",
        "ids",
        INTERACTING,
        "splits of a request's own, which may reach into the values of the next row",
        slow=True,
    ),
    _example("branch_and_loop", "steps", INTERACTING, "a branch on a sum over the rows"),
    _example("keras_functional", "color", INDEPENDENT, "preprocessing layers"),
    _example("keras_subclass", "color", INDEPENDENT, "towers", users_per_run="one"),
    _example("sequence_recurrent", "history", LENGTH, "a GRU that reads padding"),
    _example("flat_graph", "id", INTERACTING, "Switch and Merge on a sum over the rows"),
]


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
    _plain("preprocessing", INDEPENDENT, "preprocessing layers of tensors"),
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
        slow=paper.name not in ("ncf", "din"),
        users_per_run="one" if paper.name in ("din", "dien") else "many",
        own_length=_STEPS_OF_A_USER.get(paper.name, ()),
    )


def _wide(sizes: wide.Wide, *, slow: bool) -> RankingModel:
    return _zoo(
        sizes.name,
        lambda folder: wide.ensure(sizes, folder),
        lambda seed: next(wide.requests(sizes, 1, seed)),
        slow=slow,
    )


def _as_lists(row: Row) -> Row:
    return {name: value if isinstance(value, list) else [value] for name, value in row.items()}


SMALL_WIDE = wide.Wide("small_wide", user_features=6, item_features=6, hidden=(1024, 64))

MODELS = [
    *EXAMPLES,
    *PLAIN,
    _ranker("late_ranker", False, LENGTH, "a sum over padded words"),
    _ranker("late_ranker_masked", True, INDEPENDENT, "user and item towers"),
    _wide(SMALL_WIDE, slow=False),
    _wide(wide.WIDE, slow=True),
    _wide(wide.USER_HEAVY, slow=True),
    *(_paper(paper) for paper in PAPERS.values()),
    _zoo(
        "movielens",
        lambda _: ZOO["movielens"].saved_model(),
        lambda seed: ZOO["movielens"].requests([1], seed % 900)[0],
        slow=True,
        own_length=("movie_genres", "movie_title", "user_liked"),
    ),
]
