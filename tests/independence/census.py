"""The op types that the independence rule encounters, and its verdict on each model.

`python -m tests.independence.census` exports every model of the registry and, if their TensorFlow
is installed, Estimators and a pointwise model of TF-Ranking. It prints a line for each model, then
the op types that have a rule, and those without a rule that columns reach.
"""

import argparse
import contextlib
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from colcast.export import ExportError, export_saved_model
from colcast.export.graph._nodes import FlatGraph, data_inputs, producer
from colcast.export.rows._independence import Independence
from colcast.export.rows._op import RULES
from tensorflow.core.protobuf import saved_model_pb2

from ..models import RANKING
from ..other_environment import ESTIMATOR
from .exported import Exported

ESTIMATORS = {  # name -> the user's features
    "dnn": ["age", "user", "colors"],
    "linear": ["age", "user"],
    "combined": ["age", "user", "colors"],
    "old_dnn": ["age", "user", "colors"],
}

Found = tuple[Path, Mapping[str, Independence]]  # a SavedModel, its signatures' verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=RANKING, help="only these models")
    names = parser.parse_args().models
    graphs, seen, reached = 0, Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        for name, found in _exported(names, Path(scratch)):
            if isinstance(found, str):
                print(f"{name} | not exported: {found[:120]}", flush=True)
                continue
            folder, independence = found
            print(f"{name} | {_verdicts(independence)}", flush=True)
            proto = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
            (meta_graph,) = proto.meta_graphs
            for signature in independence:
                every, below = op_types(meta_graph, meta_graph.signature_def[signature])
                seen.update(every)
                reached.update(below)
                graphs += 1
    followed = {op for op in reached if op in RULES}
    unknown = {op: reached[op] for op in sorted(reached.keys() - followed)}
    print(f"\n{graphs} graphs, {len(seen)} op types; columns reach {len(reached)}")
    print(f"followed, {len(followed)}: {', '.join(sorted(followed))}")
    print(f"unknown, {len(unknown)}: {unknown}")


def op_types(meta_graph: Any, signature: Any) -> tuple[set[str], set[str]]:
    """The op types of a signature's graph, and those of ops that depend on columns."""
    graph = FlatGraph(meta_graph, [info.name for info in signature.outputs.values()])
    nodes = {producer(info.name) for info in signature.inputs.values()}
    every, below = set[str](), set[str]()
    for node in graph.nodes.values():
        types = {node.op} | _called(graph, node)
        every |= types
        if any(producer(source) in nodes for source in data_inputs(node)):
            nodes.add(node.name)
            below |= types
    return every, below


def _called(graph: FlatGraph, node: Any) -> set[str]:
    """The op types in the functions that a node calls; includes constants, so it overestimates."""
    types, known, waiting = set[str](), set[str](), [node]
    while waiting:
        for value in waiting.pop().attr.values():
            for function in (value.func, *value.list.func):
                if function.name in graph.library and function.name not in known:
                    known.add(function.name)
                    waiting += graph.library[function.name].node_def
                    types |= {each.op for each in graph.library[function.name].node_def}
    return types - {"Const"}


def _verdicts(independence: Mapping[str, Independence]) -> str:
    """The verdict on each signature; signatures with the same verdict are combined."""
    by_verdict: dict[str, list[str]] = {}
    for signature, found in independence.items():
        verdict = "rows" if found.rows else re.sub(r" \([^)]*\)", "", found.why_not)
        if found.own_length:
            verdict += f", own length of {', '.join(found.own_length)}"
        by_verdict.setdefault(verdict, []).append(signature.removeprefix("columnar_"))
    return "; ".join(f"{' '.join(names)}: {verdict}" for verdict, names in by_verdict.items())


def _exported(names: list[str] | None, scratch: Path) -> Iterator[tuple[str, Found | str]]:
    """Every model with its export, or with the export's error."""
    for name in names or RANKING:
        try:
            exported = Exported(RANKING[name], scratch / name)
        except ExportError as error:
            yield name, str(error)
            continue
        (report,) = exported.report.signatures
        yield name, (exported.base_path / "1", report.independence)
    for name, folder, options in () if names else _elsewhere(scratch):
        with contextlib.redirect_stdout(None):
            (report,) = export_saved_model(
                folder, folder.parent / "out", late=True, **options
            ).signatures
        yield name, (folder.parent / "out", report.independence)


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
