"""Finds where a columnar signature's user part may end, by trial runs and the independence rule."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from colcast.export.cut._fused import Fused, find_fused
from colcast.export.cut._late_proof import Proof
from colcast.export.graph._colours import PAIR, USER, Colours, colour
from colcast.export.graph._findings import (
    REPEATS,
    Finding,
    Findings,
    Probe,
    RowKind,
    classify_user,
    distrust,
    fetchable,
    follow_rows,
)
from colcast.export.graph._nodes import FlatGraph, producer
from colcast.export.graph._requests import DrawRows, Lengths, Request, Requests, without_a_value
from colcast.export.graph._signature import Signature, read_signature
from colcast.export.rows import Fact, Walk
from colcast.export.rows._independence import at_one_row, rows_of, shared

_FEW = 5  # candidates of a further request, for item tensors


class _Watched:
    """Trial runs of a columnar signature, which `findings` evaluates for any colouring."""

    def __init__(
        self,
        session: tf.compat.v1.Session,
        graph: FlatGraph,
        signature: Signature,
        colours: Colours,
        users: Sequence[Request],
        few: Request,
        tolerances: Iterable[float],
        facts: Mapping[str, Fact] | None,
    ) -> None:
        """Runs the signature.

        Args:
            session: a session with the graph.
            graph: the signature's nodes.
            signature: the columnar signature.
            colours: the nodes' colours, with the largest possible user part.
            users: requests of the users whose rows classify user tensors; each has as many
                candidates as `REPEATS` needs.
            few: a request by `_FEW` candidates.
            tolerances: largest differences that count as equal; `classify_user` classifies for
                each.
            facts: the independence rule's fact for every tensor, if it is known already.

        Raises:
            ExportError: the signature fails on generated rows.
        """
        self._session, self._graph, self._signature, self._facts = session, graph, signature, facts
        placeholders = {producer(tensor) for tensor in signature.inputs.values()}
        nodes = [n for n in colours.of if n not in placeholders and n not in colours.waiting]
        user = [name for name in nodes if colours.of[name] == USER]
        items = [n for n in nodes if colours.of[n] == PAIR and n not in colours.unsteady]
        self._fixed = _placeholders(session.graph, signature)
        waiting = fetchable(session.graph, colours.waiting - placeholders)
        self._fixed |= {tensor: Finding(RowKind.CONSTANT) for tensor in waiting}
        self._of_users: dict[float, Findings] = {tolerance: {} for tolerance in tolerances}
        self._of_rows: Findings = {}
        self.probe: Probe | None = None
        of_user = fetchable(session.graph, user)
        tensors = of_user | fetchable(session.graph, items)
        if not tensors:
            return
        # Users and rows use one set of fetches, because TensorFlow prepares the graph for each set.
        self.probe = Probe(session, signature.inputs, tensors, inner=True)
        if of_user:
            self._of_users = classify_user(self.probe, users, self._of_users, of_user)
        self._of_rows = follow_rows(self.probe, {2: users[0], _FEW: few})

    def findings(self, colours: Colours, tolerance: float) -> Findings:
        """Returns a finding for every tensor of the user and item sides.

        Findings determine the frontier: if an op at N rows reads a user-side tensor, the tensor is
        repeated if it is row-like, read unchanged if it is constant, and otherwise computed again
        at N rows from its inputs.

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
        """Marks as OTHER the user's tensors that the independence rule cannot prove to be row-wise.

        Trial runs are not enough: a sum over rows looks constant if it is 0 for every tried user.
        Lists need no equal length, since all rows belong to one user.
        """
        unproved = {
            tensor: finding
            for tensor, finding in findings.items()
            if colours.of.get(producer(tensor)) == USER and finding.kind is not RowKind.OTHER
        }
        facts = self.facts if unproved else {}
        return {
            tensor: replace(finding, kind=RowKind.OTHER, reason=facts[tensor].why)
            for tensor, finding in unproved.items()
            if tensor in facts and facts[tensor].kind == "mixed"
        }

    @cached_property
    def facts(self) -> Mapping[str, Fact]:
        """The independence rule's fact for every tensor."""
        if self._facts is None:
            self._facts = walk(self._session, self._graph, self._signature)
        return self._facts


def walk(
    session: tf.compat.v1.Session, graph: FlatGraph, signature: Signature
) -> Mapping[str, Fact]:
    """Applies the independence rule to a columnar signature; returns a fact for every tensor."""
    rows, known = {**signature.items, **signature.user}, session.graph
    given = {**rows_of(rows, known), **shared(signature.shared, known)}
    return Walk(graph, session, given).facts


def _placeholders(graph: tf.Graph, signature: Signature) -> Findings:
    findings = {}
    for tensor in signature.inputs.values():
        shape = graph.get_tensor_by_name(tensor).shape
        if tensor in signature.shared.values():
            findings[tensor] = Finding(RowKind.CONSTANT)
        else:
            findings[tensor] = Finding(RowKind.ROW, (1, *shape.as_list()[1:]))
    return findings


_USERS = 8  # number of users whose rows the trials use
_NO_VALUE = "0 or empty in all generated rows, so its effect is unknown"


@dataclass(frozen=True)
class Observed:
    """A columnar signature and the findings of its trial runs.

    Attributes:
        name: the signature's name.
        session: an initialised session on the MetaGraph.
        signature: its inputs by domain.
        graph: its nodes.
        held: the user's placeholders that must stay at N rows, with the reason.
        watched: its trial runs.
        colours: colours of its nodes: USER, PAIR for all other columns, or FREE.
        findings: findings about its tensors.
        fused: products that must read finite values or stay whole.
        requests: draws requests that it accepts.
        run: runs its outputs.
        proof: compares other signatures with it.
        tolerance: largest relative difference of float outputs; 0 if `exact`.
        exact: whether the user part has only ops that keep every bit.
        kernel_rows: tensors with rows of a kernel, written for an earlier signature of the same
            MetaGraph and reused by later ones.
    """

    name: str
    session: tf.compat.v1.Session
    signature: Signature
    graph: FlatGraph
    held: dict[str, str]
    watched: _Watched
    colours: Colours
    findings: Findings
    fused: Fused
    requests: Requests
    run: Probe
    proof: Proof
    tolerance: float
    exact: bool = False
    kernel_rows: dict[tuple[str, bool, bytes], str] = field(default_factory=dict)

    def user_facts(self, late: str) -> Mapping[str, Fact]:
        """Facts about tensors that late signature `late` computes from the user's single row."""
        found: dict[str, Fact] = {}
        for name, node in self.graph.nodes.items():
            if self.colours.of[name] != USER or node.op == "Placeholder":
                continue
            outputs = self.session.graph.get_operation_by_name(name).outputs
            facts = [at_one_row(self.watched.facts[tensor.name]) for tensor in outputs]
            known = [fact for fact in facts if fact is not None]
            if len(known) == len(facts):
                names = (f"{late}/user/{tensor.name}" for tensor in outputs)
                found.update(zip(names, known, strict=True))
        return found

    def exactly(self) -> "Observed":
        """The same trials, with a user part that has only ops that keep outputs bit-identical."""
        colours = _colour(self.graph, self.signature, self.held, exact=True)
        findings = self.watched.findings(colours, 0.0)
        return replace(self, colours=colours, findings=findings, tolerance=0.0, exact=True)


def observe(
    meta_graph: Any,
    session: tf.compat.v1.Session,
    *,
    user_columns: Collection[str],
    rows: DrawRows,
    bold_rows: DrawRows | None = None,
    columnar_signature: str = "columnar",
    tolerance: float = 1e-5,
    lengths: Lengths = MappingProxyType({}),
    facts: Mapping[str, Fact] | None = None,
) -> Observed:
    """Runs a columnar signature to find where its user part can end.

    Args:
        meta_graph: MetaGraphDef with a flat columnar signature.
        session: an initialised session on the same graph.
        user_columns: inputs that are the same on every row of a request.
        rows: draws trial rows: `rows(n)` returns n rows of every columnar input, new ones on each
            call. The rows should vary widely: empty and long lists, unknown words, zeros, negative
            numbers, large ids.
        bold_rows: draws rows that the model may score NaN; `rows` avoids such rows. User tensors
            are observed on both; the proof uses only `rows`.
        columnar_signature: the signature's name.
        tolerance: largest relative difference of float outputs.
        lengths: the columns of lists, with the columns of their lengths.
        facts: the signature's `walk`, if it is known already.

    Raises:
        ExportError: a name is wrong, every feature is the user's, or the signature fails on the
            rows.
    """
    signature = read_signature(meta_graph, columnar_signature, user_columns)
    run = Probe(session, signature.inputs, signature.outputs)
    requests = Requests(rows, signature.user, signature.items, run, lengths)
    graph = FlatGraph(meta_graph, signature.outputs.values())
    sources = [requests]
    if bold_rows is not None:
        sources.append(Requests(bold_rows, signature.user, signature.items, run, lengths))
    drawn = [(source.draw(max(REPEATS)), source.rows) for source in sources for _ in range(_USERS)]
    users, batches = zip(*drawn, strict=True)
    held = {producer(signature.user[name]): _NO_VALUE for name in without_a_value(users)}
    colours = _colour(graph, signature, held)
    tolerances = {0.0, tolerance}
    # find_fused adds an op. It precedes all runs, because a session copies its graph for new ops.
    fused = find_fused(graph, session, signature)
    few = requests.draw(_FEW)
    watched = _Watched(session, graph, signature, colours, users, few, tolerances, facts)
    return Observed(
        columnar_signature,
        session,
        signature,
        graph,
        held,
        watched,
        colours,
        watched.findings(colours, tolerance),
        fused(batches, watched.probe),
        requests,
        run,
        Proof(run, requests),
        tolerance,
    )


def _colour(
    graph: FlatGraph, signature: Signature, held: Mapping[str, str], *, exact: bool = False
) -> Colours:
    columns = {USER: signature.once.values(), PAIR: signature.items.values()}
    return colour(graph, columns, held, waiting=USER, exact=exact)
