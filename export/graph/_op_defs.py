"""Ops: their definitions in a MetaGraph, and the libraries that implement them."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.export.graph._errors import ExportError
from tensorflow.python.framework import op_def_registry


class OpDefs:
    """Looks up ops in the model first: it may have custom ops or another TensorFlow's ops."""

    def __init__(self, meta_graph: Any) -> None:
        """Reads the op list and the function library of a MetaGraphDef."""
        self._ops = {op.name: op for op in meta_graph.meta_info_def.stripped_op_list.op}
        library = meta_graph.graph_def.library.function
        self._ops.update({function.signature.name: function.signature for function in library})

    def get(self, op: str) -> Any:
        """The OpDef of an op or function; ExportError if neither model nor process has it."""
        found = self._ops.get(op) or op_def_registry.get(op)
        if found is None:
            raise ExportError(
                f"op {op!r} is defined neither in the model nor in this TensorFlow;"
                " load its library with --op-library"
            )
        return found

    def output_start(self, node: Any, output: str) -> int:
        """The flat index at which a named output of a node begins."""
        start = 0
        for argument in self.get(node.op).output_arg:
            if argument.name == output:
                return start
            start += _tensor_count(node, argument)
        raise ExportError(f"node {node.name!r} ({node.op}) has no output {output!r}")

    def output_at(self, node: Any, index: int) -> tuple[str, int]:
        """The named output to which a flat index belongs, and the index within it."""
        rest = index
        for argument in self.get(node.op).output_arg:
            count = _tensor_count(node, argument)
            if rest < count:
                return str(argument.name), rest
            rest -= count
        raise ExportError(f"node {node.name!r} ({node.op}) has no output {index}")

    def input_at(self, node: Any, index: int) -> str:
        """The name of the argument to which a node's input belongs; "" if there is none."""
        for argument in self.get(node.op).input_arg:
            index -= _tensor_count(node, argument)
            if index < 0:
                return str(argument.name)
        return ""


def _tensor_count(node: Any, argument: Any) -> int:
    if argument.number_attr:
        return int(node.attr[argument.number_attr].i)
    if argument.type_list_attr:
        return len(node.attr[argument.type_list_attr].list.type)
    return 1


# Packages to load when an op is missing, and the folder of each one's libraries.
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
            f"op {missing[0]!r} is not defined in this TensorFlow: install its package"
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
