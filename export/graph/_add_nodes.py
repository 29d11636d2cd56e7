"""New nodes in a graph: in a session's, to be tried, and in the MetaGraphDef."""

from typing import Any

import tensorflow as tf
from colcast.export.graph._flat_graph import FlatGraph, GraphDef, producer


def import_nodes(graph: tf.Graph, added: GraphDef) -> None:
    """Adds nodes to a graph; what they read and is not among them is in the graph already."""
    own = {node.name for node in added.node}
    trial, present = GraphDef(), {}
    trial.CopyFrom(added)
    for node in trial.node:
        for source in list(node.input):
            if producer(source) in own:
                continue
            outputs = graph.get_operation_by_name(producer(source)).outputs
            if outputs:
                present[source] = outputs[int(source.partition(":")[2] or 0)]
            else:
                node.input.remove(source)  # a free assertion; import_graph_def cannot refer to it
    with graph.as_default():
        tf.import_graph_def(trial, input_map=present, name="")


def add_nodes(meta_graph: Any, graph: FlatGraph, added: GraphDef) -> None:
    """Adds new nodes to a MetaGraphDef, and their ops to its list, which older loaders consult."""
    meta_graph.graph_def.node.extend(added.node)
    listed = meta_graph.meta_info_def.stripped_op_list.op
    missing = {node.op for node in added.node} - {op.name for op in listed}
    for op in sorted(missing):
        listed.add().CopyFrom(graph.op_defs.get(op))
