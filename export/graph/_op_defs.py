"""Op definitions of a MetaGraph: a node's number of outputs, and the index of each named one."""

from typing import Any

from colcast.export.graph._errors import ExportError
from tensorflow.python.framework import op_def_registry


class OpDefs:
    """Looks up ops in the model first: it may come from another TensorFlow or have custom ops."""

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


def _tensor_count(node: Any, argument: Any) -> int:
    if argument.number_attr:
        return int(node.attr[argument.number_attr].i)
    if argument.type_list_attr:
        return len(node.attr[argument.type_list_attr].list.type)
    return 1
