"""Finds signatures whose answers depend on more than the request and the model's files.

If a signature is impure, its states are not cached, its requests are not joined or split, and it is
not cut into stages. A signature is impure if it writes a resource, reads one that another served
signature writes, or runs an op that reads a clock, random numbers, a file or a counter. An unknown
stateful op counts as impure.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import NodeDef, attribute, data_inputs, functions_of, producer
from colcast.export.graph._op_defs import OpDefs
from tensorflow.core.framework.types_pb2 import DT_RESOURCE

# Keep in step with the lists in server/engine/rewrites/impure_signatures.cc.

_HANDLES = {
    "HashTable", "HashTableV2", "MutableDenseHashTable", "MutableDenseHashTableV2",
    "MutableHashTable", "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2",
    "MutableHashTableV2", "VarHandleOp", "Variable", "VariableV2",
}  # fmt: skip
# Ops that are registered as stateful, or read state, but change nothing when run; their results
# depend only on what they read. The state of TensorArrays and stacks lives for one run only.
_HARMLESS = {
    "Assert", "BoostedTreesEnsembleResourceHandleOp", "BoostedTreesPredict", "Case",
    "CheckNumerics", "CheckNumericsV2", "DeepCopy", "Empty", "GuaranteeConst", "If",
    "IsVariableInitialized", "LookupTableExport", "LookupTableExportV2", "LookupTableFind",
    "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2", "Print", "PrintV2",
    "ReadVariableOp", "RefEnter", "RefExit", "RefIdentity", "RefMerge", "RefNextIteration",
    "RefSelect", "RefSwitch", "ResourceGather", "ResourceGatherNd", "StatefulPartitionedCall",
    "StatelessRandomGetAlg", "VarIsInitializedOp", "VariableShape", "While", "XlaCallModule",
}  # fmt: skip
_HARMLESS_PREFIXES = ("Sentencepiece", "SimpleML", "Stack", "TensorArray")
_READ_FILES = {"MatchingFiles", "ReadFile"}  # TensorFlow declares these stateless
_PASS_ON = {
    "Enter", "Exit", "Identity", "Merge", "NextIteration", "RefEnter", "RefExit", "RefIdentity",
    "RefMerge", "RefNextIteration", "RefSwitch", "Switch",
}  # fmt: skip
_BY_CONDITION = {"Case", "If", "StatelessCase", "StatelessIf"}
_BY_POSITION = {"PartitionedCall", "StatefulPartitionedCall", "StatelessWhile", "While"}
_ANY = "*"  # an unknown resource


@dataclass(frozen=True)
class Impurity:
    """The reason why a signature is impure.

    Attributes:
        why: the op, or the variable and the signature that writes it.
        writes: whether the signature itself writes, so that running it twice differs from once.
    """

    why: str
    writes: bool = False


def find_impure(meta_graph: Any, unserved: Collection[str] = ()) -> dict[str, Impurity]:
    """Finds the impure signatures among the served ones.

    Args:
        meta_graph: the MetaGraphDef.
        unserved: signatures that no request can run.

    Returns:
        Signature names with the reason.
    """
    graph = _Graph(meta_graph)
    served = {
        name: _Reached(graph, signature)
        for name, signature in meta_graph.signature_def.items()
        if not name.startswith("__") and name not in unserved
    }
    own = {name: found for name, reached in served.items() if (found := reached.impurity())}
    return own | {
        name: Impurity(why)
        for name, reached in served.items()
        if name not in own and (why := _written(reached, served))
    }


class _Graph:
    def __init__(self, meta_graph: Any) -> None:
        graph_def = meta_graph.graph_def
        self._op_defs = OpDefs(meta_graph)
        self.main = _Scope({node.name: node for node in graph_def.node})
        self.library = {f.signature.name: f for f in graph_def.library.function}

    def called_by(self, node: NodeDef) -> Iterator[Any]:
        names = (node.op, *functions_of(node))
        yield from (self.library[name] for name in names if name in self.library)

    def is_harmless(self, node: NodeDef) -> bool:
        """Whether an op computes the same result in every run and changes no state."""
        op = node.op
        if op in self.library or op in _HARMLESS or op.startswith(_HARMLESS_PREFIXES):
            return True
        definition = self._definition(op)
        stateful = definition is None or definition.is_stateful or op in _READ_FILES
        return not (stateful or self.takes_handle(op))

    def takes_handle(self, op: str) -> bool:
        """Whether an op takes a resource or a reference, or is unknown."""
        definition = self._definition(op)
        inputs = definition.input_arg if definition else ()
        return definition is None or any(i.is_ref or i.type == DT_RESOURCE for i in inputs)

    def _definition(self, op: str) -> Any:
        try:
            return self._op_defs.get(op)
        except ExportError:  # the op is from a library that this process has not loaded
            return None


@dataclass
class _Scope:
    """The main graph, or a function body with the resources of its arguments ("" for values)."""

    nodes: dict[str, NodeDef]
    arguments: dict[str, str] = field(default_factory=dict)

    def resource_at(self, tensor: str) -> str:
        """The resource that a tensor is a handle of; "" if unknown."""
        seen = set[str]()
        while (name := producer(tensor)) not in seen:
            seen.add(name)
            if name in self.arguments:
                return self.arguments[name]
            node = self.nodes.get(name)
            if node is None or node.op in _HANDLES:
                return _resource_of(node) if node else ""
            if node.op not in _PASS_ON:
                return ""
            tensor = node.input[0]
        return ""


class _Reached:
    """The resources and effects that a run of a signature reaches, also in functions it calls."""

    def __init__(self, graph: _Graph, signature: Any) -> None:
        self._graph = graph
        self._bodies = set[tuple[str, ...]]()
        self.read = set[str]()  # resources that are read
        self.written: dict[str, str] = {}  # resource -> the op that writes it
        self._effect = ""
        seen, waiting = set[str](), list(_outputs(signature.outputs.values()))
        while waiting:
            name = producer(waiting.pop())
            if name not in seen and name in graph.main.nodes:
                seen.add(name)
                node = graph.main.nodes[name]
                self._visit(graph.main, node)
                waiting += node.input

    def impurity(self) -> Impurity | None:
        """The signature's own impurity, regardless of what other signatures write."""
        if self.written:
            resource, op = min(self.written.items())
            return Impurity(f'it writes "{resource}" ({op})', writes=True)
        return Impurity(f"{self._effect} differs between runs") if self._effect else None

    def _visit(self, scope: _Scope, node: NodeDef) -> None:
        if node.op in _HANDLES:
            self.read.add(_resource_of(node))
            return
        for function in self._graph.called_by(node):
            self._visit_body(scope, node, function)
        if self._graph.is_harmless(node):
            return
        self._effect = self._effect or f"{node.name} ({node.op})"
        written = {scope.resource_at(tensor) for tensor in data_inputs(node)} - {""}
        if not written and self._graph.takes_handle(node.op):
            written = {_ANY}
        self.written |= dict.fromkeys(written - self.written.keys(), node.op)

    def _visit_body(self, caller: _Scope, call: NodeDef, function: Any) -> None:
        names = [argument.name for argument in function.signature.input_arg]
        resources = _arguments(caller, call, function, len(names))
        key = (function.signature.name, *resources)
        if key in self._bodies:
            return
        self._bodies.add(key)
        nodes = {node.name: node for node in function.node_def}
        body = _Scope(nodes, dict(zip(names, resources, strict=True)))
        for node in nodes.values():
            self._visit(body, node)


def _arguments(caller: _Scope, call: NodeDef, function: Any, count: int) -> list[str]:
    """The resource that each argument receives; _ANY if the call's order of inputs is unknown."""
    given = data_inputs(call)[1 if call.op in _BY_CONDITION else 0 :][:count]
    known = call.op in _BY_CONDITION | _BY_POSITION or call.op == function.signature.name
    if not known or len(given) < count:
        return [_ANY] * count
    return [caller.resource_at(tensor) for tensor in given]


def _written(reader: _Reached, served: dict[str, _Reached]) -> str:
    """Names a resource that `reader` reads and the signature that writes it; "" if none does."""
    for name in sorted(served):
        written = served[name].written.keys()
        if found := sorted(reader.read if _ANY in written else reader.read & written):
            return f'it reads "{found[0]}", which signature "{name}" writes'
    return ""


def _resource_of(handle: NodeDef) -> str:
    container, name = (attribute(handle, key).s.decode() for key in ("container", "shared_name"))
    name = name or handle.name
    return f"{container}/{name}" if container else name


def _outputs(infos: Any) -> Iterator[str]:
    """The tensors of outputs, including the components of sparse and composite ones."""
    for info in infos:
        sparse = info.coo_sparse
        yield from (
            info.name,
            sparse.values_tensor_name,
            sparse.indices_tensor_name,
            sparse.dense_shape_tensor_name,
        )
        yield from _outputs(info.composite_tensor.components)
