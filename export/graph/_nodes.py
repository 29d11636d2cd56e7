"""GraphDef nodes: their references, ancestors and constants, and the nodes of one signature."""

import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from colcast.export.graph._errors import ExportError
from colcast.export.graph._op_defs import OpDefs
from colcast.export.graph._sessions import session_config
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.graph_pb2 import GraphDef as GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef as NodeDef
from tensorflow.python.framework import op_def_registry

NOT_COPIED = ("_class", "_output_shapes")
"""Attributes that copies of a node must not have: colocations and inferred shapes."""

LIST_ROLE = "_colcast_list"
"""The attribute of nodes that the converter makes from a list's columns: b"ROLE:FEATURE"."""


class FlatGraph:
    """All nodes from which a set of tensors is computed.

    Attributes:
        nodes: name to NodeDef, inputs before their consumers. The only exception is a loop's back
            edge (NextIteration to Merge).
        library: the functions of the graph by name.
        op_defs: the definitions of its ops.
    """

    def __init__(self, meta_graph: Any, tensors: Iterable[str]) -> None:
        """Collects the nodes of a MetaGraphDef from which `tensors` ("node:0") are computed."""
        graph_def = meta_graph.graph_def
        every = {node.name: node for node in graph_def.node}
        self.op_defs = OpDefs(meta_graph)
        self.nodes = _inputs_first(every, [producer(tensor) for tensor in tensors])
        self.library = {
            function.signature.name: function for function in graph_def.library.function
        }

    def with_nodes(self, nodes: Iterable[NodeDef], tensors: Iterable[str]) -> "FlatGraph":
        """The graph that computes `tensors`, with nodes from this graph and from `nodes`."""
        made = object.__new__(FlatGraph)
        made.op_defs, made.library = self.op_defs, self.library
        every = {**self.nodes, **{node.name: node for node in nodes}}
        made.nodes = _inputs_first(every, [producer(tensor) for tensor in tensors])
        return made


def data_inputs(node: NodeDef) -> list[str]:
    """The tensors that a node reads, in the form "node:port"."""
    return [name if ":" in name else f"{name}:0" for name in node.input if name[0] != "^"]


def control_inputs(node: NodeDef) -> list[str]:
    """The nodes that must run before this one but pass it no value."""
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


Nodes = Mapping[str, Any]  # node name -> NodeDef


def producer(reference: str) -> str:
    """The node of a tensor or of a control input: `a` for `a`, `a:1` and `^a`."""
    return reference.removeprefix("^").partition(":")[0]


def canonical(reference: str) -> str:
    """The spelling of an input in a GraphDef: `a` rather than `a:0`."""
    return reference.removesuffix(":0")


def scope_name(name: str) -> str:
    """The closest valid name for a node."""
    return re.sub(r"^[^A-Za-z0-9.]|[^A-Za-z0-9_./\\-]", "_", name).lstrip("_/") or "column"


def output_index(reference: str) -> int:
    """The index of the output that a tensor name refers to."""
    return int(reference.partition(":")[2] or 0)


def ancestors(
    nodes: Nodes, references: Iterable[str], stop: Collection[str] = (), controls: bool = True
) -> set[str]:
    """Names of the nodes that make `references`, and of all their ancestors.

    The search leaves out `stop` nodes and does not go past them. It follows control inputs only
    if `controls` is true.
    """
    found: set[str] = set()
    queue = [producer(reference) for reference in references]
    while queue:
        name = queue.pop()
        if name in found or name in stop:
            continue
        if name not in nodes:
            raise ExportError(f"the graph has no node {name!r}, which another node reads")
        found.add(name)
        queue.extend(
            producer(reference)
            for reference in nodes[name].input
            if controls or not reference.startswith("^")
        )
    return found


def needed_for(
    graph_def: GraphDef, references: Iterable[str], more: Iterable[NodeDef] = ()
) -> GraphDef:
    """The nodes and functions of a graph, and of `more` nodes, that the references need."""
    nodes = {node.name: node for node in (*more, *graph_def.node)}
    functions = {function.signature.name: function for function in graph_def.library.function}
    needed: set[str] = set()
    waiting = set(map(producer, references))
    while waiting:
        needed |= ancestors(nodes, waiting, stop=needed)
        beside = {name for each in needed for name in _colocated(nodes[each])}
        waiting = beside - needed
    called = called_functions([nodes[name] for name in needed], functions)
    made = GraphDef(versions=graph_def.versions)
    made.node.extend(node for name, node in nodes.items() if name in needed)
    made.library.function.extend(function for n, function in functions.items() if n in called)
    return made


def _colocated(node: NodeDef) -> list[str]:
    """The nodes with which a node must be colocated."""
    beside = node.attr["_class"].list.s if "_class" in node.attr else ()
    return [name.decode().removeprefix("loc:@") for name in beside]


def functions_of(node: NodeDef) -> list[str]:
    """The functions in a node's attributes."""
    if not _may_call(node.op):
        return []
    held = [(value.WhichOneof("value"), value) for value in node.attr.values()]
    single = [value.func.name for kind, value in held if kind == "func"]
    return single + [f.name for kind, value in held if kind == "list" for f in value.list.func]


@functools.cache
def _may_call(op: str) -> bool:
    """Whether nodes of an op may have a function in an attribute."""
    definition = op_def_registry.get(op)
    return definition is None or any("func" in attribute.type for attribute in definition.attr)


def called_functions(nodes: Iterable[NodeDef], library: Mapping[str, Any]) -> set[str]:
    """Names of the library's functions that the nodes call, directly or through functions."""
    called: set[str] = set()
    queue = list(nodes)
    while queue:
        node = queue.pop()
        new = {*functions_of(node), node.op} & library.keys() - called
        called |= new
        queue += [node for name in new for node in library[name].node_def]
    return called


def consumers(nodes: Nodes) -> dict[str, list[str]]:
    """The nodes that read each node, by its name."""
    reading: dict[str, list[str]] = {name: [] for name in nodes}
    for name, node in nodes.items():
        for reference in node.input:
            reading.setdefault(producer(reference), []).append(name)
    return reading


def descendants(
    reading: Mapping[str, Sequence[str]], roots: Iterable[str], ends: Collection[str] = ()
) -> set[str]:
    """Names of all nodes that depend on the roots by data or control, without the roots.

    Args:
      reading: the consumers of each node.
      roots: names of nodes.
      ends: nodes whose consumers are left out.
    """
    found: set[str] = set()
    queue = list(roots)
    while queue:
        for reader in reading.get(queue.pop(), ()):
            if reader not in found:
                found.add(reader)
                if reader not in ends:
                    queue.append(reader)
    return found


def rewire(node: Any, rename: Callable[[str], str | None]) -> None:
    """Replaces every input of a NodeDef with rename(input), or drops it if that is None."""
    renamed = [new for reference in node.input if (new := rename(reference))]
    del node.input[:]
    node.input.extend(reference for reference in renamed if not reference.startswith("^"))
    node.input.extend(dict.fromkeys(r for r in renamed if r.startswith("^")))


def constants(nodes: Nodes, references: Sequence[str], versions: Any) -> list[Any]:
    """Values of tensors that depend only on constants, as numpy arrays.

    Raises:
      ExportError: a tensor depends on an input, a variable or a table.
    """
    folded = [_folded(nodes, reference) for reference in references]
    if not any(value is None for value in folded):  # preparing a session takes longer
        return [value[()] for value in folded]
    graph_def = tf.compat.v1.GraphDef(versions=versions)
    for name in ancestors(nodes, references, controls=False):
        if nodes[name].op in ("Placeholder", "VarHandleOp", "VariableV2", "HashTableV2"):
            raise ExportError(f"expected a constant, but it depends on {name!r}")
        node = graph_def.node.add()
        node.CopyFrom(nodes[name])
        rewire(node, lambda reference: None if reference.startswith("^") else reference)
    config = session_config()
    with (
        tf.Graph().as_default() as graph,
        tf.compat.v1.Session(graph=graph, config=config) as session,
    ):
        tf.import_graph_def(graph_def, name="")
        names = [r if ":" in r else f"{r}:0" for r in references]
        return list(session.run(names))


def _folded(nodes: Nodes, reference: str) -> Any:
    """The value of a constant, or of one with another shape; None of other nodes."""
    node = nodes[producer(reference)]
    if node.op == "Const":
        return tf.make_ndarray(node.attr["value"].tensor)
    if node.op != "Reshape":
        return None
    value, shape = (_folded(nodes, source) for source in node.input[:2])
    return None if value is None or shape is None else value.reshape(shape)
