"""Turns nodes of a graph into a FunctionDef, the form in which TensorFlow 2 stores signatures."""

from collections.abc import Mapping, Sequence
from typing import Any

from colcast.export.graph._nodes import output_index, producer
from colcast.export.graph._op_defs import OpDefs
from tensorflow.core.framework import function_pb2


def function_def(
    name: str,
    nodes: Sequence[Any],
    arguments: Mapping[str, Any],
    outputs: Mapping[str, Any],
    op_defs: OpDefs,
) -> Any:
    """Returns a function whose body is a copy of some nodes.

    Args:
      name: the function's name.
      nodes: the NodeDefs to copy.
      arguments: ArgDefs in order, by the tensor that each replaces.
      outputs: ArgDefs of the outputs in order, by the tensor that each returns.
      op_defs: the definitions of the nodes' ops.
    """
    function = function_pb2.FunctionDef()
    function.signature.name = name
    function.signature.input_arg.extend(arguments.values())
    function.signature.output_arg.extend(outputs.values())
    function.signature.is_stateful = any(op_defs.get(node.op).is_stateful for node in nodes)
    references = _References(nodes, arguments, op_defs)
    for node in nodes:
        body = function.node_def.add()
        body.CopyFrom(node)
        del body.input[:]
        body.input.extend(kept for r in node.input if (kept := references(r)))
    for tensor, argument in outputs.items():
        function.ret[argument.name] = references(tensor) or ""
    return function


class _References:
    """Rewrites tensor names as functions have them: `node:output:index`, or an argument's name."""

    def __init__(self, nodes: Sequence[Any], arguments: Mapping[str, Any], op_defs: OpDefs) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._arguments = arguments
        self._op_defs = op_defs

    def __call__(self, reference: str) -> str | None:
        """The reference inside the function; None for control inputs from outside."""
        name = producer(reference)
        if reference.startswith("^"):
            return reference if name in self._nodes else None
        if name in self._arguments:
            return str(self._arguments[name].name)
        output, index = self._op_defs.output_at(self._nodes[name], output_index(reference))
        return f"{name}:{output}:{index}"
