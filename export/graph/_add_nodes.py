"""Adds new nodes to a session's graph, for trials, and to the MetaGraphDef."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from colcast.export.graph._flat_graph import GraphDef, NodeDef, producer
from colcast.export.graph._op_defs import OpDefs


def import_nodes(graph: tf.Graph, added: GraphDef) -> None:
    """Adds nodes to a graph that may have some of them already, along with all their other inputs.

    Raises:
      ValueError: the graph has another node of that name.
    """
    known = {operation.name: operation for operation in graph.get_operations()}
    for node in added.node:
        if node.name in known and known[node.name].type != node.op:
            raise ValueError(f"the graph has another node {node.name!r}")
    trial, present = GraphDef(node=[n for n in added.node if n.name not in known]), {}
    own = {node.name for node in trial.node}
    for node in trial.node:
        for source in list(node.input):
            if producer(source) in own:
                continue
            outputs = graph.get_operation_by_name(producer(source)).outputs
            if outputs:
                present[source] = outputs[int(source.partition(":")[2] or 0)]
            else:
                # An assertion outside the copy, to which import_graph_def cannot refer.
                node.input.remove(source)
    with graph.as_default():
        tf.import_graph_def(trial, input_map=present, name="")


def add_nodes(meta_graph: Any, added: Sequence[NodeDef]) -> None:
    """Adds new nodes to a MetaGraphDef, and their ops to its op list, which older loaders check."""
    meta_graph.graph_def.node.extend(added)
    listed = meta_graph.meta_info_def.stripped_op_list.op
    missing = {node.op for node in added} - {op.name for op in listed}
    definitions = OpDefs(meta_graph)
    for op in sorted(missing):
        listed.add().CopyFrom(definitions.get(op))
