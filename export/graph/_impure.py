"""Which signatures answer by more than their request and the model's files.

A state is kept, requests run together and split, and stages are cut only where the answer is a
function of those two: no served signature writes what is read, and no op reads a clock, random
numbers, a file or a counter. A stateful op that is not known counts as one that does.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from colcast.export.graph._errors import ExportError
from colcast.export.graph._flat_graph import NodeDef, attribute, data_inputs
from colcast.export.graph._nodes import producer
from colcast.export.graph._op_defs import OpDefs
from tensorflow.core.framework.types_pb2 import DT_RESOURCE

# server/engine/rewrites/impure_signatures.cc has the same lists.

_HANDLES = {
    "HashTable", "HashTableV2", "MutableDenseHashTable", "MutableDenseHashTableV2",
    "MutableHashTable", "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2",
    "MutableHashTableV2", "VarHandleOp", "Variable", "VariableV2",
}  # fmt: skip
# Stateful by their registration, or readers of a state; but running them changes nothing, and what
# they give follows from what they read. States of TensorArrays and stacks live for one run.
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
_READ_FILES = {"MatchingFiles", "ReadFile"}  # stateless to TensorFlow
_PASS_ON = {
    "Enter", "Exit", "Identity", "Merge", "NextIteration", "RefEnter", "RefExit", "RefIdentity",
    "RefMerge", "RefNextIteration", "RefSwitch", "Switch",
}  # fmt: skip
_BY_CONDITION = {"Case", "If", "StatelessCase", "StatelessIf"}
_BY_POSITION = {"PartitionedCall", "StatefulPartitionedCall", "StatelessWhile", "While"}
_ANY = "*"  # a resource that is not known


@dataclass(frozen=True)
class Impurity:
    """Why a signature is impure.

    Attributes:
        why: names the op, or the variable and the signature that writes it.
        writes: the signature itself does: a second run is not the same as one.
    """

    why: str
    writes: bool = False


def find_impure(meta_graph: Any, unserved: Collection[str] = ()) -> dict[str, Impurity]:
    """The impure ones among the served signatures.

    Args:
        meta_graph: MetaGraphDef.
        unserved: signatures that no request can run.
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
        """The functions that a node calls."""
        names = [node.op]
        for value in node.attr.values():
            names += [value.func.name, *(function.name for function in value.list.func)]
        yield from (self.library[name] for name in names if name in self.library)

    def is_harmless(self, node: NodeDef) -> bool:
        """Whether runs of an op never differ and change no state."""
        op = node.op
        if op in self.library or op in _HARMLESS or op.startswith(_HARMLESS_PREFIXES):
            return True
        definition = self._definition(op)
        stateful = definition is None or definition.is_stateful or op in _READ_FILES
        return not (stateful or self.takes_handle(op))

    def takes_handle(self, op: str) -> bool:
        """Whether an op takes a resource or a reference, as far as is known."""
        definition = self._definition(op)
        inputs = definition.input_arg if definition else ()
        return definition is None or any(i.is_ref or i.type == DT_RESOURCE for i in inputs)

    def _definition(self, op: str) -> Any:
        try:
            return self._op_defs.get(op)
        except ExportError:  # of a library that this process has not loaded
            return None


@dataclass
class _Scope:
    """The main graph, or a function's body with the resources of its arguments, "" for values."""

    nodes: dict[str, NodeDef]
    arguments: dict[str, str] = field(default_factory=dict)

    def resource_at(self, tensor: str) -> str:
        """The resource whose handle a tensor is; "" if none is known."""
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
    """What running a signature reaches."""

    def __init__(self, graph: _Graph, signature: Any) -> None:
        self._graph = graph
        self._bodies = set[tuple[str, ...]]()
        self.read = set[str]()  # resources
        self.written: dict[str, str] = {}  # resource -> op
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
        """What it is by itself."""
        if self.written:
            resource, op = min(self.written.items())
            return Impurity(f'it writes "{resource}" ({op})', writes=True)
        return (
            Impurity(f"{self._effect} gives something else in each run") if self._effect else None
        )

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
    """The resource of each argument: any where it is not known how inputs are handed on."""
    given = data_inputs(call)[1 if call.op in _BY_CONDITION else 0 :][:count]
    known = call.op in _BY_CONDITION | _BY_POSITION or call.op == function.signature.name
    if not known or len(given) < count:
        return [_ANY] * count
    return [caller.resource_at(tensor) for tensor in given]


def _written(reader: _Reached, served: dict[str, _Reached]) -> str:
    """Which resource another signature writes, and which signature; "" if none does."""
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
    """The tensors of outputs, sparse and composite ones among them."""
    for info in infos:
        sparse = info.coo_sparse
        yield from (
            info.name,
            sparse.values_tensor_name,
            sparse.indices_tensor_name,
            sparse.dense_shape_tensor_name,
        )
        yield from _outputs(info.composite_tensor.components)
