"""Which tensors may be where the user's part ends: what running shows, less what it cannot show."""

from collections.abc import Sequence

import tensorflow as tf
from colcast.export.graph._colours import PAIR, USER, Colours
from colcast.export.graph._distrust import distrust
from colcast.export.graph._findings import (
    Finding,
    Findings,
    Probe,
    RowKind,
    classify_user,
    fetchable,
    follow_rows,
)
from colcast.export.graph._flat_graph import FlatGraph, producer
from colcast.export.graph._requests import Request, Requests
from colcast.export.late._late_signature import Signature

_CANDIDATES = (2, 5)  # numbers of candidates at which item tensors are watched


def find_frontier(
    session: tf.compat.v1.Session,
    graph: FlatGraph,
    signature: Signature,
    colours: Colours,
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
        colours: of its nodes.
        users: users to classify tensors with, each beside as many candidates as `REPEATS` asks for.
        requests: more requests.
        tolerance: difference taken for equal by `classify_user`.

    Raises:
        ExportError: the signature fails on generated rows.
    """
    watched = _watch(session, signature, colours, users, requests, tolerance)
    return distrust(graph, colours, USER, watched)


def _watch(
    session: tf.compat.v1.Session,
    signature: Signature,
    colours: Colours,
    users: Sequence[Request],
    requests: Requests,
    tolerance: float,
) -> Findings:
    placeholders = {producer(tensor) for tensor in signature.inputs.values()}
    nodes = [name for name in colours.of if name not in placeholders]
    user = [n for n in nodes if colours.of[n] == USER and n not in colours.waiting]
    items = [n for n in nodes if colours.of[n] == PAIR and n not in colours.unsteady]
    waiting = [n for n in nodes if n in colours.waiting]
    findings = _placeholders(session.graph, signature)
    findings |= {t: Finding(RowKind.CONSTANT) for t in fetchable(session.graph, waiting)}
    if user_tensors := fetchable(session.graph, user):
        probe = Probe(session, signature.inputs, user_tensors)
        findings |= classify_user(probe, users, tolerance)
    if item_tensors := fetchable(session.graph, items):
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
