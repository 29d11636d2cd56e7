"""Loads libraries of ops that TensorFlow's wheel does not have."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.export.graph._errors import ExportError
from tensorflow.python.framework import op_def_registry

# Packages to load when an op is missing, with the folders of their libraries.
_PACKAGES = {"tensorflow_text": "python/ops", "ydf_tf": "."}


def load_op_libraries(files: Iterable[Path]) -> None:
    """Loads libraries of custom ops; ExportError names one that cannot be loaded."""
    for file in files:
        try:
            tf.load_op_library(str(file))
        except (tf.errors.OpError, RuntimeError) as error:
            raise ExportError(f"op library {file}: {error}") from error


def provide_ops(meta_graph: Any) -> None:
    """Loads the installed libraries that a MetaGraphDef's ops need.

    Raises:
      ExportError: an op is still missing; the message names it.
    """
    for package, folder in _PACKAGES.items():
        if not _missing_ops(meta_graph):
            return
        spec = find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            load_op_libraries(sorted(Path(location, folder).glob("*.so")))
    if missing := _missing_ops(meta_graph):
        raise ExportError(
            f"op {missing[0]!r} is not defined in this TensorFlow: install the package that has it"
            " (tensorflow-text: TF Text's, ydf-tf: Decision Forests'),"
            " or load its library with --op-library"
        )


def _missing_ops(meta_graph: Any) -> list[str]:
    """Ops of the graph and its functions that are neither functions nor registered."""
    graph = meta_graph.graph_def
    ops = {node.op for node in graph.node}
    ops.update(node.op for function in graph.library.function for node in function.node_def)
    ops -= {function.signature.name for function in graph.library.function}
    return sorted(op for op in ops if op_def_registry.get(op) is None)
