"""Applies the independence rule to each signature that an export writes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.graph._flat_graph import FlatGraph, producer
from colcast.export.graph._signature import Signature
from colcast.export.rows._facts import Fact
from colcast.export.rows._independence import Independence, find_independence, once, rows_of

CANDIDATE = "candidate"


def candidates(
    meta_graph: Any, session: tf.compat.v1.Session, signature: Signature
) -> Independence:
    """Applies the rule to the candidates of a signature.

    User inputs have one row in every run that candidates may share. A columnar signature has none,
    since all its columns have one row per candidate.
    """
    tensors = [*signature.outputs.values(), *signature.inputs.values()]
    given = {
        **rows_of(CANDIDATE, signature.items, session.graph),
        **once(signature.user, signature.shared, session.graph),
    }
    graph = FlatGraph(meta_graph, tensors)
    copies = _copies(graph, rows_of(CANDIDATE, signature.user, session.graph))
    found, _ = find_independence(graph, session, given, signature.outputs, CANDIDATE, copies)
    return found


def _copies(graph: FlatGraph, columns: Mapping[str, Fact]) -> dict[str, Fact]:
    """Facts about tensors that repeat unchanged columns, as if each row had its own."""
    facts = {producer(tensor): fact for tensor, fact in columns.items()}
    found = {}
    for node in graph.nodes.values():
        if node.op != "Tile":
            continue
        source = producer(node.input[0])
        while _is_as_it_came(graph, source):
            source = producer(graph.nodes[source].input[0])
        if source in facts:
            found[f"{node.name}:0"] = facts[source]
    return found


def _is_as_it_came(graph: FlatGraph, name: str) -> bool:
    """Whether an op passes its input on unchanged, except that a negative length becomes 0."""
    node = graph.nodes[name]
    if node.op != "Maximum":
        return bool(node.op == "EnsureShape")
    least = graph.nodes[producer(node.input[1])]
    return least.op == "Const" and not np.any(tf.make_ndarray(least.attr["value"].tensor))
