"""What becomes of the three stages of every model there is: `python -m tests.late.survey_stages`.

A line per model: how much of the op time at 100 candidates late expansion saves, what is kept of a
user and of an item, how many ops are left to the last stage, whether one run takes several users;
or why no stages are written. `--models NAME...` for some of them; models of the zoo are made where
they are not there yet, which takes minutes.
"""

import argparse
import contextlib
import functools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from colcast.export import ExportError, export_saved_model
from colcast.zoo.registry import MODELS as ZOO
from rich.console import Console
from rich.table import Table

from tests import tensorflow_2_15
from tests.models import examples, plain, ranker

USER = ["user_*"]
ESTIMATORS = {  # name -> the features taken for the user's
    "dnn": ["age", "user", "colors"],
    "linear": ["age", "user"],
    "combined": ["age", "user", "colors"],
    "old_dnn": ["age", "user", "colors"],
}


def main(argv: Sequence[str] | None = None) -> None:
    """Exports every model and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", metavar="NAME", help="these only, such as zoo/din")
    names = parser.parse_args(argv).models
    with tempfile.TemporaryDirectory() as scratch:
        found = _models(Path(scratch))
        if unknown := sorted({*(names or ())} - found.keys()):
            parser.error(f"there is no {unknown[0]!r}; there are {', '.join(found)}")
        table = Table(title="Three stages", title_justify="left")
        for heading in (
            "model",
            "late saves",
            "of a user",
            "of an item",
            "pair ops",
            "users per run",
        ):
            table.add_column(heading, overflow="fold")
        for name in names or found:
            save, signature, user = found[name]
            table.add_row(name, *_line(save, Path(scratch, name), signature, user))
        Console(width=150).print(table)


def _models(scratch: Path) -> dict[str, tuple[Callable[[Path], Path], str, list[str]]]:
    """What saves each model and gives its folder, the signature, the user's features."""

    def version(name: str) -> Callable[[Path], Path]:
        return lambda _: ZOO[name].saved_model() / "1"

    def built(build: Callable[[Path], None]) -> Callable[[Path], Path]:
        def save(folder: Path) -> Path:
            build(folder / "model")
            return folder / "model"

        return save

    found: dict[str, Any] = {}
    for name in ZOO:
        found[f"zoo/{name}"] = (version(name), "serving_default", USER)
    for name, model in examples.MODELS.items():
        half = sorted(model.spec)[: max(1, len(model.spec) // 2)]  # they name no user
        found[f"export/{name}"] = (built(model.build), "serving_default", half)
    for name, (build, signature) in plain.MODELS.items():
        found[f"plain/{name}"] = (built(build), signature, USER)
    trained = functools.cache(lambda: _estimators(scratch / "estimators"))
    for name, user in ESTIMATORS.items():
        save = functools.partial(lambda name, _: trained() / name / "examples", name)
        found[f"estimator/{name}"] = (save, "predict", user)
    found["late/ranker"] = (built(ranker.save), "serving_default", USER)
    return found


def _estimators(folder: Path) -> Path:
    """Trains them in TensorFlow 2.15."""
    tensorflow_2_15.run("export/estimators.py", folder)
    return folder


def _line(
    save: Callable[[Path], Path], scratch: Path, signature: str, user: Sequence[str]
) -> list[str]:
    """The cells of a model behind its name."""
    scratch.mkdir(parents=True)
    try:
        with contextlib.redirect_stdout(None):
            report = export_saved_model(
                save(scratch),
                scratch / "out",
                signatures=[signature],
                user_features=user,
                late=True,
            )
    except ExportError as error:
        return [f"not exported: {error}", "", "", "", ""]
    (made,) = report.signatures
    assert made.late
    assert made.stages
    saved = f"{made.late.gain:.0%}"
    stages = made.stages
    if not stages.written:
        return [saved, f"no stages: {stages.reason}", "", "", ""]
    return [
        saved,
        _states(stages.user_states),
        _states(stages.item_states),
        str(stages.pair_ops),
        stages.users_per_run + (f": {stages.why_one}" if stages.why_one else ""),
    ]


def _states(states: Sequence[Any]) -> str:
    kinds: dict[str, int] = {}
    for state in states:
        sizes = ", ".join("?" if size is None else str(size) for size in state.shape)
        kind = f"{state.dtype} [{sizes}]"
        kinds[kind] = kinds.get(kind, 0) + 1
    return "; ".join(f"{count} x {kind}" for kind, count in kinds.items())


if __name__ == "__main__":
    main()
