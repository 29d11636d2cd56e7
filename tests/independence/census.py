"""The independence rule's verdict on each model: `python -m tests.independence.census`.

Exports every model of the registry. Prints a line for each: signatures with the same verdict
together, with the lists that must be equally long in one run.
"""

import argparse
import re
import tempfile
from pathlib import Path

from colcast.export import ExportError

from ..models import RANKING
from .exported import Exported


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=RANKING, default=list(RANKING))
    with tempfile.TemporaryDirectory() as scratch:
        for name in parser.parse_args().models:
            print(f"{name} | {_verdicts(name, Path(scratch) / name)}", flush=True)


def _verdicts(name: str, folder: Path) -> str:
    try:
        (report,) = Exported(RANKING[name], folder).report.signatures
    except ExportError as error:
        return f"not exported: {str(error)[:120]}"
    by_verdict: dict[str, list[str]] = {}
    for signature, found in report.independence.items():
        verdict = "rows" if found.rows else re.sub(r" \([^)]*\)", "", found.why_not)
        if found.own_length:
            verdict += f", own length of {', '.join(found.own_length)}"
        by_verdict.setdefault(verdict, []).append(signature.removeprefix("columnar_"))
    return "; ".join(f"{' '.join(names)}: {verdict}" for verdict, names in by_verdict.items())


if __name__ == "__main__":
    main()
