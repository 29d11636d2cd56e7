"""The nodes of a flat MetaGraph that one signature runs."""

from collections.abc import Iterable
from typing import Any

from colcast.export.graph._nodes import producer
from colcast.export.graph._op_defs import OpDefs
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef

__all__ = [
    "FlatGraph", "GraphDef", "NodeDef", "attribute", "control_inputs", "data_inputs", "producer",
]  # fmt: skip


class FlatGraph:
    """All nodes from which a set of tensors is computed.

    Attributes:
        nodes: name to NodeDef, inputs before their consumers. The only exception is a loop's back
            edge (NextIteration to Merge).
        library: the functions of the graph by name.
        op_defs: the definitions of its ops.
    """

    def __init__(self, meta_graph: Any, tensors: Iterable[str]) -> None:
        """Takes the MetaGraphDef, and the tensors ("node:0") whose ancestors are included."""
        graph_def = meta_graph.graph_def
        every = {node.name: node for node in graph_def.node}
        self.op_defs = OpDefs(meta_graph)
        self.nodes = _inputs_first(every, [producer(tensor) for tensor in tensors])
        self.library = {
            function.signature.name: function for function in graph_def.library.function
        }

    def with_nodes(self, nodes: Iterable[NodeDef], tensors: Iterable[str]) -> "FlatGraph":
        """The nodes from which other tensors are computed, taken from this graph and `nodes`."""
        made = object.__new__(FlatGraph)
        made.op_defs, made.library = self.op_defs, self.library
        every = {**self.nodes, **{node.name: node for node in nodes}}
        made.nodes = _inputs_first(every, [producer(tensor) for tensor in tensors])
        return made


def data_inputs(node: NodeDef) -> list[str]:
    """The tensors that a node reads, in the form "node:port"."""
    return [name if ":" in name else f"{name}:0" for name in node.input if name[0] != "^"]


def control_inputs(node: NodeDef) -> list[str]:
    """The nodes that must run before this one but give it no value."""
    return [name[1:] for name in node.input if name[0] == "^"]


def attribute(node: NodeDef, key: str) -> Any:
    """An attribute of a node as an AttrValue; a missing one reads as zero, false or no type."""
    return node.attr[key] if key in node.attr else AttrValue()


def _inputs_first(every: dict[str, NodeDef], roots: list[str]) -> dict[str, NodeDef]:
    done: dict[str, NodeDef] = {}
    ways_back: list[str] = []
    stack = [(root, False) for root in reversed(roots)]
    while stack or ways_back:
        if not stack:
            stack.append((ways_back.pop(), False))
        name, inputs_done = stack.pop()
        if name in done:
            continue
        if inputs_done:
            done[name] = every[name]
            continue
        stack.append((name, True))
        for source in (producer(name) for name in every[name].input):
            if every[source].op in ("NextIteration", "RefNextIteration"):
                ways_back.append(source)
            elif source not in done:
                stack.append((source, False))
    return done
