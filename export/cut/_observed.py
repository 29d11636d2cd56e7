"""Finds where a columnar signature's user part may end, by trial runs and the independence rule."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow as tf
from colcast.export.convert._features import Feature, Side
from colcast.export.cut._findings import (
    REPEATS,
    Finding,
    Findings,
    RowKind,
    follow_rows,
    user_findings,
)
from colcast.export.cut._fused import Fused, find_fused
from colcast.export.cut._late_proof import Proof
from colcast.export.graph._colours import PAIR, USER, Colours, colour
from colcast.export.graph._nodes import FlatGraph, producer
from colcast.export.graph._probe import Probe, fetchable
from colcast.export.graph._signature import Signature, read_signature
from colcast.export.rows import Fact, Walk
from colcast.export.rows._independence import at_one_row, rows_of
from colcast.export.trials._requests import (
    DrawRows,
    Requests,
    with_empty_sequences,
    without_a_value,
)
from colcast.export.trials._rows import Rows

_FEW = 5  # candidates of a further request, for item tensors


class _Watched:
    """Trial runs of a columnar signature, which `findings` evaluates for any colouring."""

    def __init__(
        self,
        session: tf.compat.v1.Session,
        signature: Signature,
        colours: Colours,
        users: Sequence[Rows],
        few: Rows,
        tolerances: Iterable[float],
        facts: Mapping[str, Fact],
    ) -> None:
        """Runs the signature.

        Args:
            session: a session with the graph.
            signature: the columnar signature.
            colours: the nodes' colours, with the largest possible user part.
            users: requests of the users whose rows classify user tensors; each has as many
                candidates as `REPEATS` needs.
            few: a request of `_FEW` candidates.
            tolerances: largest differences that count as equal.
            facts: the independence rule's fact for every tensor.

        Raises:
            ExportError: the signature fails on generated rows.
        """
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
            self._of_users = user_findings(self.probe, users, facts, self._of_users, of_user)
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
        return self._fixed | {
            tensor: finding
            for colour, findings in of.items()
            for tensor, finding in findings.items()
            if colours[tensor] == colour
        }


def walk(
    session: tf.compat.v1.Session, graph: FlatGraph, signature: Signature
) -> Mapping[str, Fact]:
    """Applies the independence rule to a columnar signature; returns a fact for every tensor."""
    rows, known = {**signature.items, **signature.user}, session.graph
    given = {**rows_of(rows, known), **rows_of(signature.shared, known, rows=None)}
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


_USERS = 4  # number of users whose rows the trials use
_NO_VALUE = "0 or empty in all generated rows, so its effect is unknown"


@dataclass(frozen=True)
class Observed:
    """A columnar signature and the findings of its trial runs.

    Attributes:
        name: the signature's name.
        session: an initialised session on the MetaGraph.
        signature: its inputs by domain.
        graph: its nodes.
        facts: the independence rule's fact for every tensor.
        held: the user's placeholders that must stay at N rows, with the reason.
        watched: its trial runs.
        colours: colours of its nodes: USER, PAIR for all other columns, or FREE.
        findings: findings about its tensors.
        fused: products that must read finite values or stay whole.
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
    facts: Mapping[str, Fact]
    held: dict[str, str]
    watched: _Watched
    colours: Colours
    findings: Findings
    fused: Fused
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
            facts = [at_one_row(self.facts[tensor.name]) for tensor in outputs]
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
    features: Sequence[Feature],
    rows: DrawRows,
    bold_rows: DrawRows | None = None,
    columnar_signature: str = "columnar",
    tolerance: float = 1e-5,
    facts: Mapping[str, Fact] | None = None,
) -> Observed:
    """Runs a columnar signature to find where its user part can end.

    Args:
        meta_graph: MetaGraphDef with a flat columnar signature.
        session: an initialised session on the same graph.
        features: the signature's features; those of the user are the same on every row of a
            request.
        rows: draws trial rows of these features. They should vary widely: empty and long lists,
            unknown words, zeros, negative numbers, large ids.
        bold_rows: draws rows that the model may score NaN; `rows` avoids such rows. User tensors
            are observed on both; the proof uses only `rows`.
        columnar_signature: the signature's name.
        tolerance: largest relative difference of float outputs.
        facts: the signature's `walk`, if it is known already.

    Raises:
        ExportError: a name is wrong, every feature is the user's, or the signature fails on the
            rows.
    """
    user = [column.name for f in features if f.side == Side.USER for column in f.columns]
    signature = read_signature(meta_graph, columnar_signature, user)
    run = Probe(session, signature.inputs, signature.outputs)
    requests = Requests(rows, run)
    graph = FlatGraph(meta_graph, signature.outputs.values())
    facts = walk(session, graph, signature) if facts is None else facts
    sources = [requests, *([Requests(bold_rows, run)] if bold_rows else [])]
    drawn = [(source.draw(max(REPEATS)), source.rows) for source in sources for _ in range(_USERS)]
    users, batches = zip(*drawn, strict=True)
    empty = with_empty_sequences(batches[0])
    held = {producer(signature.user[name]): _NO_VALUE for name in without_a_value(users)}
    colours = _colour(graph, signature, held)
    tolerances = {0.0, tolerance}
    few = requests.draw(_FEW)
    # Both add an op and run only then, because a session copies its graph for new ops.
    fused = find_fused(graph, session, signature)
    watched = _Watched(session, signature, colours, users, few, tolerances, facts)
    return Observed(
        columnar_signature,
        session,
        signature,
        graph,
        facts,
        held,
        watched,
        colours,
        watched.findings(colours, tolerance),
        fused([batch.columns() for batch in [*batches, *empty]], watched.probe),
        Proof(run, requests),
        tolerance,
    )


def _colour(
    graph: FlatGraph, signature: Signature, held: Mapping[str, str], *, exact: bool = False
) -> Colours:
    columns = {USER: signature.once.values(), PAIR: signature.items.values()}
    return colour(graph, columns, held, waiting=USER, exact=exact)
