"""Finds the tensors at which the user part may end: those that runs and the rule both allow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

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
from colcast.export.rows._facts import Fact, Kind
from colcast.export.rows._independence import facts_of, once, rows_of

_ROWS = "columnar"  # the domain of all rows, the user's included
_CANDIDATES = (2, 5)  # numbers of candidates in trials of item tensors


class Watched:
    """A columnar signature's tensors in trial runs, the basis of findings for any colouring."""

    def __init__(
        self,
        session: tf.compat.v1.Session,
        graph: FlatGraph,
        signature: Signature,
        colours: Colours,
        users: Sequence[Request],
        requests: Requests,
        tolerances: Iterable[float],
    ) -> None:
        """Runs the signature.

        Args:
            session: a session with the graph.
            graph: the signature's nodes.
            signature: the columnar signature.
            colours: the nodes' colours, with as many nodes the user's as possible.
            users: users with whom tensors are classified, each with as many candidates as `REPEATS`
                needs.
            requests: a source of more requests.
            tolerances: the largest differences that count as equal in `classify_user`.

        Raises:
            ExportError: the signature fails on generated rows.
        """
        self._session, self._graph, self._signature = session, graph, signature
        placeholders = {producer(tensor) for tensor in signature.inputs.values()}
        nodes = [n for n in colours.of if n not in placeholders and n not in colours.waiting]
        user = [name for name in nodes if colours.of[name] == USER]
        items = [n for n in nodes if colours.of[n] == PAIR and n not in colours.unsteady]
        self._fixed = _placeholders(session.graph, signature)
        waiting = fetchable(session.graph, colours.waiting - placeholders)
        self._fixed |= {tensor: Finding(RowKind.CONSTANT) for tensor in waiting}
        self._of_users: dict[float, Findings] = {tolerance: {} for tolerance in tolerances}
        self._of_rows: Findings = {}
        self._facts = cache(self._find_facts)
        probes = [
            Probe(session, signature.inputs, fetchable(session.graph, nodes), inner=True)
            for nodes in (user, [*user, *items])
        ]
        if probes[0].names:
            self._of_users = classify_user(probes[0], users, self._of_users)
        if probes[1].names:
            tried = {rows: requests.draw(rows) for rows in _CANDIDATES}
            self._of_rows = follow_rows(probes[1], tried)

    def findings(self, colours: Colours, tolerance: float) -> Findings:
        """The findings for every tensor of the user side and the item side.

        They determine the frontier: where an op at N rows reads a user-side tensor, the tensor is
        repeated if it is row-like, read as it is if it is constant, and otherwise computed again at
        N rows from its inputs.

        Args:
            colours: the nodes' colours.
            tolerance: largest difference that counts as equal.
        """
        of = {USER: self._of_users[tolerance], PAIR: self._of_rows}
        seen = {
            tensor: finding
            for colour, findings in of.items()
            for tensor, finding in findings.items()
            if colours[tensor] == colour
        }
        trusted = distrust(self._graph, colours, USER, self._fixed | seen)
        return trusted | self._mixed(colours, trusted)

    def _mixed(self, colours: Colours, findings: Findings) -> Findings:
        """The user's tensors that the rule does not prove to follow their rows.

        The rule is needed because a sum over rows that are 0 for all tried users looks constant. It
        may treat the user's columns as lists or as columns of equal width, since all rows belong to
        one user; one proof suffices.
        """
        unproved = {
            tensor: finding
            for tensor, finding in findings.items()
            if colours.of.get(producer(tensor)) == USER and finding.kind is not RowKind.OTHER
        }
        for lists in (False, True):
            facts = self._facts(lists) if unproved else {}
            unproved = {
                tensor: replace(finding, kind=RowKind.OTHER, reason=facts[tensor].why)
                for tensor, finding in unproved.items()
                if tensor in facts and facts[tensor].kind is Kind.MIXED
            }
        return unproved

    def _find_facts(self, lists: bool) -> Mapping[str, Fact]:
        """The rule's fact for every tensor, with the user's columns as lists or equally wide."""
        graph, signature = self._session.graph, self._signature
        given = {
            **rows_of(_ROWS, signature.items, graph),
            **once({}, signature.shared, graph),
            **rows_of(_ROWS, signature.user, graph, lists=lists),
        }
        return facts_of(self._graph, self._session, given)


def _placeholders(graph: tf.Graph, signature: Signature) -> Findings:
    findings = {}
    for tensor in signature.inputs.values():
        shape = graph.get_tensor_by_name(tensor).shape
        if tensor in signature.shared.values():
            findings[tensor] = Finding(RowKind.CONSTANT)
        else:
            findings[tensor] = Finding(RowKind.ROW, (1, *shape.as_list()[1:]))
    return findings
