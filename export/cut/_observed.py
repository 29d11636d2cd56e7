"""A columnar signature and the findings of its trial runs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow as tf
from colcast.export.cut._frontier import Watched
from colcast.export.cut._fused import Fused, find_fused
from colcast.export.cut._late_proof import Proof
from colcast.export.graph._colours import PAIR, USER, Colours, colour
from colcast.export.graph._findings import REPEATS, Findings, Probe
from colcast.export.graph._flat_graph import FlatGraph, producer
from colcast.export.graph._requests import DrawRows, Requests, without_a_value
from colcast.export.graph._signature import Signature, read_signature

_USERS = 8  # users with whom tensors are classified; products are observed on their rows
_NO_VALUE = "0 or empty in all generated rows, so nothing shows what it does"


@dataclass(frozen=True)
class Observed:
    """A columnar signature in trials.

    Attributes:
        name: the signature's name.
        session: an initialised session on the MetaGraph.
        signature: its inputs by domain.
        graph: its nodes.
        held: the user's placeholders that must stay at N rows, with the reason.
        watched: its tensors in trial runs.
        colours: colours of its nodes: the user's, all others', or free.
        findings: findings about its tensors.
        fused: products that must read finite values or stay whole.
        requests: draws requests that it accepts.
        run: runs its outputs.
        proof: compares other signatures with it.
        tolerance: largest relative difference of float outputs; 0 if `exact`.
        exact: whether only ops that keep every bit count as the user's.
        kernel_rows: tensors with rows of a kernel in a signature already made from it, in the same
            MetaGraph.
    """

    name: str
    session: tf.compat.v1.Session
    signature: Signature
    graph: FlatGraph
    held: dict[str, str]
    watched: Watched
    colours: Colours
    findings: Findings
    fused: Fused
    requests: Requests
    run: Probe
    proof: Proof
    tolerance: float
    exact: bool = False
    kernel_rows: dict[tuple[str, bool, bytes], str] = field(default_factory=dict)

    def exactly(self) -> "Observed":
        """The same trials, but moving only ops that leave every output bit-identical."""
        colours = _colour(self.graph, self.signature, self.held, exact=True)
        findings = self.watched.findings(colours, 0.0)
        return replace(self, colours=colours, findings=findings, tolerance=0.0, exact=True)


def observe(
    meta_graph: Any,
    session: tf.compat.v1.Session,
    *,
    user_features: Collection[str],
    rows: DrawRows,
    bold_rows: DrawRows | None = None,
    columnar_signature: str = "columnar",
    tolerance: float = 1e-5,
) -> Observed:
    """Runs a columnar signature to find where its user part can end.

    Args:
        meta_graph: MetaGraphDef with a flat columnar signature.
        session: an initialised session on the same graph.
        user_features: features that are the same on every row of a request; `f` includes its column
            `f/length`.
        rows: draws trial rows: `rows(n)` returns n rows of every columnar input, new ones on each
            call. They should cover everything that can differ: empty and long lists, unknown words,
            zeros, negative numbers, large ids.
        bold_rows: draws rows that the model may score NaN, which `rows` avoids. User tensors are
            observed on both; the proof uses only `rows`.
        columnar_signature: the signature's name.
        tolerance: largest relative difference of float outputs.

    Raises:
        ExportError: a name is wrong, every feature is the user's, or the signature fails on the
            rows.
    """
    signature = read_signature(meta_graph, columnar_signature, user_features)
    run = Probe(session, signature.inputs, signature.outputs)
    requests = Requests(rows, signature.user, signature.items, run)
    graph = FlatGraph(meta_graph, signature.outputs.values())
    sources = [requests]
    if bold_rows is not None:
        sources.append(Requests(bold_rows, signature.user, signature.items, run))
    drawn = [(source.draw(max(REPEATS)), source.rows) for source in sources for _ in range(_USERS)]
    users, batches = zip(*drawn, strict=True)
    held = {producer(signature.user[name]): _NO_VALUE for name in without_a_value(users)}
    colours = _colour(graph, signature, held)
    tolerances = {0.0, tolerance}
    watched = Watched(session, graph, signature, colours, users, requests, tolerances)
    return Observed(
        columnar_signature,
        session,
        signature,
        graph,
        held,
        watched,
        colours,
        watched.findings(colours, tolerance),
        find_fused(graph, session, signature, batches),
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
