"""The independence rule's verdict on each model.

`python -m tests.independence.census` exports every model of the registry and, if their TensorFlow
is installed, Estimators and a pointwise model of TF-Ranking. It prints a line for each model:
signatures with the same verdict together, with the lists that must be equally long in one run.
"""

import argparse
import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from colcast.export import ExportError, export_saved_model
from colcast.export.rows._independence import Independence

from ..models import RANKING
from ..other_environment import ESTIMATOR
from .exported import Exported

ESTIMATORS = {  # name -> the user's features
    "dnn": ["age", "user", "colors"],
    "linear": ["age", "user"],
    "combined": ["age", "user", "colors"],
    "old_dnn": ["age", "user", "colors"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=RANKING, help="only these models")
    with tempfile.TemporaryDirectory() as scratch:
        for name, verdicts in _exported(parser.parse_args().models, Path(scratch)):
            print(f"{name} | {verdicts}", flush=True)


def _verdicts(independence: Mapping[str, Independence]) -> str:
    by_verdict: dict[str, list[str]] = {}
    for signature, found in independence.items():
        verdict = "rows" if found.rows else re.sub(r" \([^)]*\)", "", found.why_not)
        if found.own_length:
            verdict += f", own length of {', '.join(found.own_length)}"
        by_verdict.setdefault(verdict, []).append(signature.removeprefix("columnar_"))
    return "; ".join(f"{' '.join(names)}: {verdict}" for verdict, names in by_verdict.items())


def _exported(names: list[str] | None, scratch: Path) -> Iterator[tuple[str, str]]:
    """Every model with the verdicts on its signatures, or with the export's error."""
    for name in names or RANKING:
        try:
            exported = Exported(RANKING[name], scratch / name)
        except ExportError as error:
            yield name, f"not exported: {str(error)[:120]}"
            continue
        (report,) = exported.report.signatures
        yield name, _verdicts(report.independence)
    for name, folder, options in () if names else _elsewhere(scratch):
        with contextlib.redirect_stdout(None):
            (report,) = export_saved_model(
                folder, folder.parent / "out", late=True, **options
            ).signatures
        yield name, _verdicts(report.independence)


def _elsewhere(scratch: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Models of TensorFlow 2.15: name, folder, and export options."""
    if ESTIMATOR.package("tensorflow"):
        trained = scratch / "estimators"
        ESTIMATOR.run("export/estimators.py", trained)
        for name, user in ESTIMATORS.items():
            options = {"signatures": ["predict"], "user_features": user}
            yield f"estimator_{name}", trained / name / "examples", options
    if ESTIMATOR.package("tensorflow_ranking"):
        trained = scratch / "ranking"
        ESTIMATOR.run("export/ranking_models.py", trained)
        lists = {
            "signatures": ["tensorflow/serving/predict"],
            "examples": trained / "pointwise/lists",
        }
        yield "tf_ranking_pointwise", trained / "pointwise/model", lists


if __name__ == "__main__":
    main()
