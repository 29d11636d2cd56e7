"""Inlines function calls to make one flat graph of a TensorFlow 2 signature.

A node's name shows its origin: node `b` of the function that call node `a` runs becomes `a/b`.
Functions that If, While and other ops take as attributes are not inlined. Functions that XLA
compiles (`jit_compile=True`) are not inlined either, because that could change their results.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import ancestors, canonical, output_index, producer, rewire
from colcast.export.graph._op_defs import OpDefs

_CALL_OPS = ("PartitionedCall", "StatefulPartitionedCall")

# Ops without effects. They are dropped if no output needs them, even if they are stateful.
_READING_OPS = frozenset(
    {
        "Const",
        "HashTableV2",
        "Identity",
        "LookupTableFindV2",
        "LookupTableSizeV2",
        "NoOp",
        "Placeholder",
        "ReadVariableOp",
        "ResourceGather",
        "ResourceGatherNd",
        "VarHandleOp",
        "VarIsInitializedOp",
        "VariableShape",
    }
)


@dataclasses.dataclass
class Inlined:
    """The nodes that some tensors need, without function calls.

    Attributes:
      nodes: NodeDef by name; nodes from outside functions keep their names.
      tensors: the name in `nodes` of each requested tensor.
      inlined: names of the nodes that came from functions.
      effects: nodes that calls run for their effects (assertions, assignments, prints).
    """

    nodes: dict[str, Any]
    tensors: dict[str, str]
    inlined: set[str]
    effects: list[str]


def flatten(meta_graph: Any, tensors: Iterable[str]) -> Inlined:
    """Returns the nodes that the tensors of a MetaGraphDef need, with all calls inlined."""
    return _Inliner(meta_graph).run([canonical(tensor) for tensor in tensors])


class _Inliner:
    def __init__(self, meta_graph: Any) -> None:
        self._op_defs = OpDefs(meta_graph)
        self._main = {node.name: node for node in meta_graph.graph_def.node}
        self._functions = {f.signature.name: f for f in meta_graph.graph_def.library.function}
        self._nodes: dict[str, Any] = {}
        self._inlined: dict[str, tuple[str, ...]] = {}  # node -> the functions it was inlined from
        self._outputs: dict[str, list[str]] = {}  # call node -> its output tensors
        self._controls: dict[str, list[str]] = {}  # call node -> the last nodes of its function

    def run(self, tensors: list[str]) -> Inlined:
        for name in ancestors(self._main, tensors):
            self._nodes[name] = _copy(self._main[name])
        calls = [name for name in self._nodes if self._called(name)]
        effects: list[str] = []
        while calls:
            call = calls.pop()
            body = self._inline(call)
            calls.extend(name for name in body if self._called(name))
            effects.extend(self._controls[call])
        for node in self._nodes.values():
            self._resolve_inputs(node)
        flat = {tensor: self._resolve(tensor) for tensor in tensors}
        effects = [name for name in effects if name in self._nodes and not self._only_reads(name)]
        needed = ancestors(self._nodes, [*flat.values(), *effects])
        return Inlined(
            nodes={name: node for name, node in self._nodes.items() if name in needed},
            tensors=flat,
            inlined=needed & self._inlined.keys(),
            effects=list(dict.fromkeys(effects)),
        )

    def _called(self, name: str) -> str | None:
        """The function that a node calls; None if it is not a call, or must not be inlined."""
        node = self._nodes[name]
        function: str = node.op
        if node.op in _CALL_OPS:
            function = node.attr["f"].func.name
        if function not in self._functions or function in self._inlined.get(name, ()):
            return None
        compiled = any(_flag(n, "_XlaMustCompile") for n in (node, self._functions[function]))
        return None if compiled else function

    def _only_reads(self, name: str) -> bool:
        op = self._nodes[name].op
        return op in _READING_OPS or not self._op_defs.get(op).is_stateful

    def _inline(self, call_name: str) -> list[str]:
        """Replaces a call node with its function's nodes and returns their names."""
        function = self._functions[self._called(call_name) or ""]
        call = self._nodes.pop(call_name)
        through = (*self._inlined.pop(call_name, ()), function.signature.name)
        scope = _Scope(function, call, self._op_defs)
        body = []
        for node_def in function.node_def:
            node = scope.instantiate(node_def)
            if node.name in self._nodes or node.name in self._main:
                raise ExportError(f"two nodes would be called {node.name!r}")
            self._nodes[node.name] = node
            self._inlined[node.name] = through
            body.append(node.name)
        outputs = [scope.tensor(function.ret[out.name]) for out in function.signature.output_arg]
        self._outputs[call_name] = outputs
        self._controls[call_name] = [scope.name(n) for n in function.control_ret.values()]
        return body

    def _resolve(self, reference: str) -> str:
        """Resolves outputs of inlined calls to the tensors that replace them."""
        while (call := producer(reference)) in self._outputs:
            reference = self._outputs[call][output_index(reference)]
        return canonical(reference)

    def _resolve_controls(self, name: str) -> list[str]:
        """The nodes to wait for instead of `name`: an inlined call's final nodes, else `name`."""
        if name not in self._outputs:
            return [name]
        ends = [producer(tensor) for tensor in self._outputs[name]] + self._controls[name]
        return [resolved for end in ends for resolved in self._resolve_controls(end)]

    def _resolve_inputs(self, node: Any) -> None:
        controls = [
            f"^{name}"
            for reference in node.input
            if reference.startswith("^")
            for name in self._resolve_controls(producer(reference))
        ]
        data = [self._resolve(r) for r in node.input if not r.startswith("^")]
        del node.input[:]
        node.input.extend([*data, *dict.fromkeys(controls)])


class _Scope:
    """A function call: translates names in the function into names of the flat graph."""

    def __init__(self, function: Any, call: Any, op_defs: OpDefs) -> None:
        self._call = call
        self._op_defs = op_defs
        self._body = {node.name: node for node in function.node_def}
        data = [reference for reference in call.input if not reference.startswith("^")]
        names = [argument.name for argument in function.signature.input_arg]
        if len(names) != len(data):
            raise ExportError(
                f"call {call.name!r} has {len(data)} inputs, but its function"
                f" {function.signature.name!r} takes {len(names)}"
            )
        self._arguments = dict(zip(names, data, strict=True))
        self._controls = [r for r in call.input if r.startswith("^")]

    def name(self, name: str) -> str:
        """The name of a body node in the flat graph; for an argument, the caller's name."""
        if name in self._arguments:
            return producer(self._arguments[name])
        return f"{self._call.name}/{name}"

    def tensor(self, reference: str) -> str:
        """The flat graph's name of `node:output:index` or of an argument."""
        if reference.startswith("^"):
            return f"^{self.name(reference[1:])}"
        name, _, output = reference.partition(":")
        if name in self._arguments:
            return str(self._arguments[name])
        output, _, index = output.partition(":")
        start = self._op_defs.output_start(self._body[name], output)
        return canonical(f"{self.name(name)}:{start + int(index or 0)}")

    def instantiate(self, node_def: Any) -> Any:
        """A copy of a body node with names, attributes and control inputs adapted to the call."""
        node = _copy(node_def)
        node.name = self.name(node_def.name)
        rewire(node, self.tensor)
        for key, value in node_def.attr.items():
            if value.placeholder:
                node.attr[key].CopyFrom(self._call.attr[value.placeholder])
        if not any(producer(reference) in self._body for reference in node_def.input):
            node.input.extend(c for c in self._controls if c not in node.input)
        return node


def _flag(node: Any, name: str) -> bool:
    return name in node.attr and bool(node.attr[name].b)


def _copy(node: Any) -> Any:
    copy = type(node)()
    copy.CopyFrom(node)
    copy.device = ""  # the machine that saved the model may have had a GPU
    return copy
