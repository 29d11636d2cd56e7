"""Which tensors may be where the user's part ends: what running shows, less what it cannot show.

`find_frontier` watches every tensor of a columnar signature that depends on the request, and then
distrusts some. A handful of runs cannot show a dependence on the number of rows that sets in later:
`tf.where(rows > 1000, a, b)` looks the same at 1, 2, 3 and 64 rows. So whatever is computed from a
number of rows, or from floats that differ from row to row, counts as neither row-like nor
constant, however it looks; only what merely takes its shape from a number of rows is trusted.
"""

from collections.abc import Sequence
from dataclasses import replace

import tensorflow as tf
from colcast.export.late._findings import (
    Finding,
    Findings,
    Probe,
    RowKind,
    classify_user,
    follow_rows,
)
from colcast.export.late._flat_graph import FlatGraph, NodeDef, data_inputs, producer
from colcast.export.late._late_signature import Signature
from colcast.export.late._ops import PICK_SIZES, SHAPE_INPUTS, TAKE_DENSE_SHAPES
from colcast.export.late._requests import Request, Requests
from colcast.export.late._sides import OpSide, Sides

_CANDIDATES = (2, 5)  # numbers of candidates at which item tensors are watched


def find_frontier(
    session: tf.compat.v1.Session,
    graph: FlatGraph,
    signature: Signature,
    sides: Sides,
    users: Sequence[Request],
    requests: Requests,
    tolerance: float,
) -> Findings:
    """What is known of every tensor of the user's and of the item side.

    Where an op at N rows reads the user's side, a row-like tensor is repeated, a constant one is
    read as it is, and one that is neither is computed again from its inputs: the frontier.

    Args:
        session: runs the signature.
        graph: the signature's nodes.
        signature: the columnar signature.
        sides: the sides of its nodes.
        users: users to classify tensors with, each beside as many candidates as `REPEATS` asks for.
        requests: more requests.
        tolerance: difference taken for equal by `classify_user`.

    Raises:
        ExportError: the signature fails on generated rows.
    """
    watched = _watch(session, signature, sides, users, requests, tolerance)
    return distrust(graph, sides, watched)


def distrust(graph: FlatGraph, sides: Sides, findings: Findings) -> Findings:
    """Corrects what was found about tensors of the user's side.

    Args:
        graph: the signature's nodes.
        sides: their sides.
        findings: what running the graph showed.

    Returns:
        The findings, with OTHER for tensors computed from a number of rows.
    """
    corrected = dict(findings)
    counts: set[str] = set()  # numbers of rows, and what is computed from them
    outputs: dict[str, list[str]] = {}
    for tensor in findings:
        outputs.setdefault(producer(tensor), []).append(tensor)
    for name, node in graph.nodes.items():
        if sides.of[name] is not OpSide.USER:
            continue
        computed = _computes_from(counts, node)
        picks = node.op in PICK_SIZES and graph.nodes[producer(node.input[0])].op == "Shape"
        for tensor in outputs.get(name, ()):
            finding = findings[tensor]
            if picks and finding.kind is RowKind.CONSTANT:
                continue
            if computed or finding.counts_rows:
                counts.add(tensor)
            if computed and finding.kind is not RowKind.OTHER:
                reason = "computed from a number of rows"
                corrected[tensor] = replace(finding, kind=RowKind.OTHER, reason=reason)
    return corrected


def _computes_from(counts: set[str], node: NodeDef) -> bool:
    if node.op in TAKE_DENSE_SHAPES:
        return False
    shapes = SHAPE_INPUTS.get(node.op, ())
    inputs = enumerate(data_inputs(node))
    return any(tensor in counts for position, tensor in inputs if position not in shapes)


def _watch(
    session: tf.compat.v1.Session,
    signature: Signature,
    sides: Sides,
    users: Sequence[Request],
    requests: Requests,
    tolerance: float,
) -> Findings:
    placeholders = {producer(tensor) for tensor in signature.inputs.values()}
    nodes = [name for name in sides.of if name not in placeholders]
    user = [n for n in nodes if sides.of[n] is OpSide.USER and n in sides.from_user]
    items = [n for n in nodes if sides.of[n] is OpSide.ITEM and n not in sides.unsteady]
    waiting = [n for n in nodes if sides.of[n] is OpSide.USER and n not in sides.from_user]
    findings = _placeholders(session.graph, signature)
    findings |= {t: Finding(RowKind.CONSTANT) for t in _outputs(session.graph, waiting)}
    if user_tensors := _outputs(session.graph, user):
        probe = Probe(session, signature.inputs, user_tensors)
        findings |= classify_user(probe, users, tolerance)
    if item_tensors := _outputs(session.graph, items):
        probe = Probe(session, signature.inputs, item_tensors)
        findings |= follow_rows(probe, {rows: requests.draw(rows) for rows in _CANDIDATES})
    return findings


def _placeholders(graph: tf.Graph, signature: Signature) -> Findings:
    findings = {}
    for tensor in signature.inputs.values():
        shape = graph.get_tensor_by_name(tensor).shape
        if tensor in signature.shared.values():
            findings[tensor] = Finding(RowKind.CONSTANT)
        else:
            findings[tensor] = Finding(RowKind.ROW, (1, *shape.as_list()[1:]))
    return findings


def _outputs(graph: tf.Graph, nodes: list[str]) -> dict[str, str]:
    """The tensors of nodes that a session can return, each under its own name."""
    return {
        tensor.name: tensor.name
        for operation in map(graph.get_operation_by_name, nodes)
        for tensor in operation.outputs
        if tensor.dtype.base_dtype not in (tf.resource, tf.variant)
        and graph.is_fetchable(operation)
    }
