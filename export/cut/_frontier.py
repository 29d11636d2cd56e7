"""Which tensors may be where the user's part ends: what running shows and the rule proves."""

from collections.abc import Sequence
from dataclasses import replace

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
from colcast.export.graph._signature import Signature
from colcast.export.rows._facts import Kind
from colcast.export.rows._independence import facts_of, once, rows_of

_ROWS = "columnar"  # the domain of all rows, the user's too
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
        tolerance: largest difference that counts as equal in `classify_user`.

    Raises:
        ExportError: the signature fails on generated rows.
    """
    watched = _watch(session, signature, colours, users, requests, tolerance)
    trusted = distrust(graph, colours, USER, watched)
    return trusted | _mixed(session, graph, signature, colours, trusted)


def _mixed(
    session: tf.compat.v1.Session,
    graph: FlatGraph,
    signature: Signature,
    colours: Colours,
    findings: Findings,
) -> Findings:
    """The user's tensors that the rule does not prove to follow their rows.

    A sum over the rows of what is 0 for all users that were tried looks constant. A user's lists
    are lists, and equally wide columns too, since all rows are one user's: either may prove it.
    """
    others = {
        **rows_of(_ROWS, signature.items, session.graph),
        **once({}, signature.shared, session.graph),
    }
    unproved = {
        tensor: finding
        for tensor, finding in findings.items()
        if colours.of.get(producer(tensor)) == USER and finding.kind is not RowKind.OTHER
    }
    for lists in (False, True):
        user = rows_of(_ROWS, signature.user, session.graph, lists=lists)
        facts = facts_of(graph, session, others | user) if unproved else {}
        unproved = {
            tensor: replace(finding, kind=RowKind.OTHER, reason=facts[tensor].why)
            for tensor, finding in unproved.items()
            if tensor in facts and facts[tensor].kind is Kind.MIXED
        }
    return unproved


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
        probe = Probe(session, signature.inputs, user_tensors, inner=True)
        findings |= classify_user(probe, users, tolerance)
    if item_tensors := fetchable(session.graph, items):
        probe = Probe(session, signature.inputs, item_tensors, inner=True)
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
