"""Runs a columnar signature to find out about all its tensors that depend on the request."""

from collections.abc import Sequence

import tensorflow as tf
from colcast.export.late._findings import (
    Finding,
    Findings,
    Kind,
    Probe,
    classify_user,
    follow_rows,
)
from colcast.export.late._flat_graph import producer
from colcast.export.late._requests import Request, Requests
from colcast.export.late._sides import Side, Sides
from colcast.export.late._signature import Signature

_CANDIDATES = (2, 5)  # numbers of candidates at which item tensors are looked at


def look(
    session: tf.compat.v1.Session,
    signature: Signature,
    sides: Sides,
    users: Sequence[Request],
    requests: Requests,
    tolerance: float,
) -> Findings:
    """Looks at every tensor of the user's and of the item side.

    Args:
        session: runs the signature.
        signature: the columnar signature.
        sides: the sides of its nodes.
        users: users to classify tensors with, each beside as many candidates as `REPEATS` asks for.
        requests: more requests.
        tolerance: difference taken for equal by `classify_user`.

    Raises:
        ExportError: the signature fails on generated rows.
    """
    placeholders = {producer(tensor) for tensor in signature.inputs.values()}
    nodes = [name for name in sides.of if name not in placeholders]
    user = [n for n in nodes if sides.of[n] is Side.USER and n in sides.from_user]
    items = [n for n in nodes if sides.of[n] is Side.ITEM and n not in sides.unsteady]
    waiting = [n for n in nodes if sides.of[n] is Side.USER and n not in sides.from_user]
    findings = _placeholders(session.graph, signature)
    findings |= {t: Finding(Kind.CONSTANT) for t in _outputs(session.graph, waiting)}
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
            findings[tensor] = Finding(Kind.CONSTANT)
        else:
            findings[tensor] = Finding(Kind.ROW, (1, *shape.as_list()[1:]))
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
