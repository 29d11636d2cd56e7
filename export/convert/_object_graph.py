"""Makes new signatures visible to `tf.saved_model.load`, which reads them from the object graph.

A TensorFlow 2 SavedModel stores each signature twice: in the MetaGraph, where servers look, and as
a function in the object graph, where Python looks. SavedModels of TensorFlow 1 have no object
graph; Python takes their signatures from the MetaGraph.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import Any

from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import Nodes, ancestors, canonical, output_index, producer
from colcast.export.graph._op_defs import OpDefs
from tensorflow.core.framework import function_pb2, op_def_pb2
from tensorflow.core.protobuf import struct_pb2

_CALL_OPS = ("PartitionedCall", "StatefulPartitionedCall")


@dataclasses.dataclass(frozen=True)
class _Capture:
    """A variable, table or constant that a function captures."""

    object_id: int
    argument: Any  # the function's ArgDef for it
    attributes: Any  # the attributes that the function gives the argument


def publish_signature(meta_graph: Any, name: str, source: str) -> None:
    """Adds a flat signature of a MetaGraphDef to its object graph, if it has one.

    Args:
      meta_graph: changed in place: adds a function to its library and a node to its object graph.
      name: a signature whose graph has no calls.
      source: the signature from which it was made; `name` reads only variables and tables of this
          one.

    Raises:
      ExportError: the graph reads a variable or table that the source does not read.
    """
    objects = meta_graph.object_graph_def
    signatures = signature_map(objects)
    if signatures is None:
        return
    entries = {child.local_name: child.node_id for child in signatures.children}
    source_entry = objects.nodes[entries[source]]
    source_function = source_entry.bare_concrete_function.concrete_function_name
    captures = _captures(meta_graph, source_function)
    keywords = _keywords(meta_graph.signature_def[name].inputs)
    # Python passes arguments in the order of the keywords, so inputs must be sorted by keyword.
    inputs = {key: meta_graph.signature_def[name].inputs[key] for key in keywords}
    function, captured = _function(meta_graph, name, inputs, captures)
    meta_graph.graph_def.library.function.append(function)

    concrete = objects.concrete_functions[function.signature.name]
    concrete.bound_inputs.extend(capture.object_id for capture in captured)
    concrete.canonicalized_input_signature.CopyFrom(_keyword_arguments(inputs, keywords))
    concrete.output_signature.CopyFrom(_by_name(meta_graph.signature_def[name].outputs))
    entry = objects.nodes.add()
    entry.CopyFrom(source_entry)
    entry.ClearField("bare_concrete_function")
    entry.bare_concrete_function.concrete_function_name = function.signature.name
    entry.bare_concrete_function.argument_keywords.extend(inputs)
    entry.bare_concrete_function.allowed_positional_arguments = int(len(inputs) == 1)
    signatures.children.add(node_id=len(objects.nodes) - 1, local_name=name)


def signature_map(objects: Any) -> Any:
    """The node of the object graph that holds the signatures; None without an object graph."""
    for child in objects.nodes[0].children if objects.nodes else ():
        if child.local_name == "signatures":
            return objects.nodes[child.node_id]
    return None


def _captures(meta_graph: Any, source_function: str) -> dict[str, _Capture]:
    """The captures of a signature's function, by their node in the MetaGraph."""
    call = next(
        node
        for node in meta_graph.graph_def.node
        if node.op in _CALL_OPS and node.attr["f"].func.name == source_function
    )
    library = {
        function.signature.name: function for function in meta_graph.graph_def.library.function
    }
    function = library[source_function]
    ids = meta_graph.object_graph_def.concrete_functions[source_function].bound_inputs
    references = [r for r in call.input if not r.startswith("^")]
    first = len(references) - len(ids)
    return {
        producer(references[first + i]): _Capture(
            object_id, function.signature.input_arg[first + i], function.arg_attr.get(first + i)
        )
        for i, object_id in enumerate(ids)
    }


def _function(
    meta_graph: Any, name: str, inputs: Mapping[str, Any], captures: Mapping[str, _Capture]
) -> tuple[Any, list[_Capture]]:
    """The function of a signature, and its captures, which follow the inputs as arguments."""
    signature = meta_graph.signature_def[name]
    nodes = {node.name: node for node in meta_graph.graph_def.node}
    placeholders = {producer(info.name) for info in inputs.values()}
    body = ancestors(
        nodes, [info.name for info in signature.outputs.values()], stop={*placeholders, *captures}
    )
    _check_body(nodes, body, name)
    read = {producer(reference) for node in body for reference in nodes[node].input}
    used = {node: capture for node, capture in captures.items() if node in read}
    arguments = {
        canonical(info.name): op_def_pb2.OpDef.ArgDef(name=f"{name}_input_{i}", type=info.dtype)
        for i, info in enumerate(inputs.values())
    }
    for i, (node, capture) in enumerate(used.items()):
        argument = op_def_pb2.OpDef.ArgDef()
        argument.CopyFrom(capture.argument)
        argument.name = f"{name}_capture_{i}"
        arguments[node] = argument
    outputs = {
        canonical(info.name): op_def_pb2.OpDef.ArgDef(name=f"{name}_output_{i}", type=info.dtype)
        for i, (_, info) in enumerate(sorted(signature.outputs.items()))
    }
    function = _function_def(
        _free_name(meta_graph, name),
        [node for node in meta_graph.graph_def.node if node.name in body],
        arguments,
        outputs,
        OpDefs(meta_graph),
    )
    for i, (key, info) in enumerate(inputs.items()):
        attributes = function.arg_attr[i].attr
        attributes["_user_specified_name"].s = key.encode()
        attributes["_output_shapes"].list.shape.add().CopyFrom(info.tensor_shape)
    for i, capture in enumerate(used.values(), start=len(inputs)):
        if capture.attributes is not None:
            function.arg_attr[i].CopyFrom(capture.attributes)
    return function, list(used.values())


def _check_body(nodes: Nodes, body: set[str], name: str) -> None:
    for node in sorted(body):
        if nodes[node].op in ("VarHandleOp", "HashTableV2", "MutableHashTableV2"):
            raise ExportError(
                f"signature {name!r} reads {node!r} ({nodes[node].op}), which its source signature"
                " does not: it cannot be made visible to tf.saved_model.load"
            )


def _free_name(meta_graph: Any, name: str) -> str:
    taken = {function.signature.name for function in meta_graph.graph_def.library.function}
    number = 0
    while (free := f"__inference_signature_wrapper_{name}_{number}") in taken:
        number += 1
    return free


def _keyword_arguments(inputs: Mapping[str, Any], keywords: Mapping[str, str]) -> Any:
    """The structure ((), {keyword: TensorSpec}): inputs by keyword, no positional arguments."""
    value = struct_pb2.StructuredValue()
    value.tuple_value.values.add().tuple_value.SetInParent()
    by_keyword = _by_name(inputs).dict_value.fields
    specs = value.tuple_value.values.add().dict_value
    for name in inputs:
        specs.fields[keywords[name]].CopyFrom(by_keyword[name])
    return value


def _by_name(infos: Mapping[str, Any]) -> Any:
    """The structure {name: TensorSpec}."""
    value = struct_pb2.StructuredValue()
    value.dict_value.SetInParent()
    for name, info in infos.items():
        spec = value.dict_value.fields[name].tensor_spec_value
        spec.name = name
        spec.dtype = info.dtype
        spec.shape.CopyFrom(info.tensor_shape)
    return value


def _keywords(names: Iterable[str]) -> dict[str, str]:
    """The Python keyword of each name, sorted by keyword.

    Keywords equal names, except where TensorFlow could not derive distinct Python names from them.
    """
    keywords: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(names):
        keyword = f"{name}_" if iskeyword(name) or not name else name
        while (python_name := re.sub(r"\W", "_", keyword)) in taken:
            keyword += "_"
        taken.add(python_name)
        keywords[name] = keyword
    return dict(sorted(keywords.items(), key=lambda item: item[1]))


def _function_def(
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
    """Rewrites tensor names as functions spell them: `node:output:index`, or an argument's name."""

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


DEFAULT = "serving_default"
_FORMER = "serving_examples"


def make_default(meta_graph: Any, name: str) -> None:
    """Also gives a signature the name `serving_default`; the old default is renamed to `_FORMER`.

    Raises:
      ExportError: a signature `_FORMER` exists already.
    """
    definitions = meta_graph.signature_def
    if _FORMER in definitions:
        raise ExportError(
            f"the old {DEFAULT!r} would be renamed to {_FORMER!r}, which exists already"
        )
    if DEFAULT in definitions:
        definitions[_FORMER].CopyFrom(definitions[DEFAULT])
    definitions[DEFAULT].CopyFrom(definitions[name])
    signatures = signature_map(meta_graph.object_graph_def)
    if signatures is None:
        return
    ids = {child.local_name: child.node_id for child in signatures.children}
    for child in signatures.children:
        if child.local_name == DEFAULT:
            child.local_name = _FORMER
    if name in ids:
        signatures.children.add(node_id=ids[name], local_name=DEFAULT)
