"""Fills variables that signatures read but that loading leaves empty.

When a Keras 3 model is saved with tf.saved_model.save, each variable gets two handles: the restore
op fills one, and the signatures read the other. Python's tf.saved_model.load handles that;
TensorFlow Serving fails with "Could not find variable". So the init op, which runs after the
restore op, is extended to assign the values; both handles then share their memory.
"""

from collections.abc import Iterable
from typing import Any

from colcast.export.graph._nodes import ancestors, producer

_INIT_SIGNATURE = "__saved_model_init_op"
_PREFIX = "colcast_mended"


def fill_variables(meta_graph: Any) -> list[str]:
    """Makes the init op fill empty handles from their restored twins; returns their names."""
    nodes = {node.name: node for node in meta_graph.graph_def.node}
    filled = _handles(nodes, [meta_graph.saver_def.restore_op_name, *_init_ops(meta_graph)])
    outputs = [
        info.name
        for key, signature in meta_graph.signature_def.items()
        if not key.startswith("__")
        for info in signature.outputs.values()
    ]
    empty = _handles(nodes, outputs) - filled
    twins = _twins(nodes)
    mended = {handle: twins[handle] for handle in sorted(empty) if twins.get(handle) in filled}
    if mended:
        _fill_at_init(meta_graph, nodes, mended)
    return list(mended)


def _handles(nodes: dict[str, Any], references: Iterable[str]) -> set[str]:
    present = [reference for reference in references if producer(reference) in nodes]
    return {name for name in ancestors(nodes, present) if nodes[name].op == "VarHandleOp"}


def _init_ops(meta_graph: Any) -> list[str]:
    if _INIT_SIGNATURE not in meta_graph.signature_def:
        return []
    outputs = meta_graph.signature_def[_INIT_SIGNATURE].outputs
    return [info.name for info in outputs.values()]


def _twins(nodes: dict[str, Any]) -> dict[str, str]:
    """Maps each handle that an assignment reads to the handle that it fills."""
    twins = {}
    for node in nodes.values():
        if node.op == "AssignVariableOp":
            handle, value = (producer(reference) for reference in node.input[:2])
            if nodes[value].op == "ReadVariableOp":
                twins[producer(nodes[value].input[0])] = handle
    return twins


def _fill_at_init(meta_graph: Any, nodes: dict[str, Any], mended: dict[str, str]) -> None:
    graph_def = meta_graph.graph_def
    assigned = []
    for handle, twin in mended.items():
        dtype = nodes[handle].attr["dtype"].type
        read = graph_def.node.add(
            name=f"{_PREFIX}/{handle}/read", op="ReadVariableOp", input=[twin]
        )
        assign = graph_def.node.add(
            name=f"{_PREFIX}/{handle}/assign", op="AssignVariableOp", input=[handle, read.name]
        )
        read.attr["dtype"].type = assign.attr["dtype"].type = dtype
        assigned.append(f"^{assign.name}")
    if _INIT_SIGNATURE not in meta_graph.signature_def:
        init = graph_def.node.add(name=f"{_PREFIX}/init", op="NoOp")
        info = meta_graph.signature_def[_INIT_SIGNATURE].outputs[_INIT_SIGNATURE]
        info.name = init.name
        info.tensor_shape.unknown_rank = True
    name = producer(_init_ops(meta_graph)[0])
    next(node for node in graph_def.node if node.name == name).input.extend(assigned)
