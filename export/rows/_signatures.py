"""The independence of each signature that an export writes."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export._errors import ExportError
from colcast.export._rows import Rows
from colcast.export.graph._comparison import CANCELLED, relative_difference
from colcast.export.graph._flat_graph import FlatGraph, producer
from colcast.export.graph._signature import Signature
from colcast.export.rows._facts import Fact
from colcast.export.rows._independence import Independence, find_independence, once, rows_of

CANDIDATE = "candidate"

Run = Callable[[Rows], Mapping[str, Any]]
Scale = Callable[[Any], Any]

_ALONE = 4  # rows of the shortest lists that are scored alone


def candidates(
    meta_graph: Any, session: tf.compat.v1.Session, signature: Signature
) -> Independence:
    """What the rule says of the candidates of a signature.

    Its user inputs have one row in every run that candidates may share; a columnar signature has
    none, since all its columns have a row per candidate.
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
    """What is known of tensors that repeat columns as they came, each row having its own."""
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
    """Whether an op gives what it reads; a length below 0 is one of 0."""
    node = graph.nodes[name]
    if node.op != "Maximum":
        return bool(node.op == "EnsureShape")
    least = graph.nodes[producer(node.input[1])]
    return least.op == "Const" and not np.any(tf.make_ndarray(least.attr["value"].tensor))


def scored_alike(run: Run, rows: Rows, tolerance: float) -> bool | None:
    """Whether candidates score the same together, alone, in another order and in pieces.

    Large floats that nearly cancel out leave their rounding, and hide what smaller ones show: rows
    have to agree with small floats, too.

    Args:
        run: runs the signature on rows of one request.
        rows: such rows, which the model accepts.
        tolerance: largest difference of floats, relative to an output's largest value or 1: small
            ones may be what large ones leave of each other. With small floats it is relative to
            the output's median.

    Returns:
        None where the model refuses some of the candidates.
    """
    try:
        if _largest_difference(run, rows, np.max) > max(tolerance, CANCELLED):
            return False
        return bool(_largest_difference(run, rows.moderate(), np.median) <= tolerance)
    except (ExportError, tf.errors.OpError):
        return None


def _largest_difference(run: Run, rows: Rows, scale: Scale) -> float:
    """How far scores of candidates together and apart differ; infinite if in more than values."""
    together = run(rows)
    worst = 0.0
    for own in _pieces(rows):
        apart = run(rows.take(own.tolist()))
        for output, whole in together.items():
            given, expected = np.asarray(apart[output]), np.asarray(whole)
            if expected.shape[:1] != (len(rows),) or given.shape != expected[own].shape:
                return np.inf
            floor = _scale(expected, scale)
            worst = max(worst, relative_difference(expected[own], given, floor, 0.0).max(initial=0))
    return worst


def _pieces(rows: Rows) -> list[Any]:
    """Rows that are scored apart: in any order; those of short lists, of long ones; some alone."""
    count = len(rows)
    order = np.random.default_rng(count).permutation(count)
    values = [sum(len(of[row] or ()) for of in rows.values.values()) for row in range(count)]
    thirds = min(count, 3)
    pieces, alone = np.array_split(order, thirds), [*order[:1]]
    if len(set(values)) > 1:
        by_length = np.argsort(values, kind="stable")
        pieces += np.array_split(by_length, thirds)
        alone = [*by_length[:_ALONE], *by_length[-1:], *alone]
    return [*pieces, *(np.array([row]) for row in dict.fromkeys(alone))]


def _scale(values: Any, scale: Scale) -> float:
    """What differences of an output are relative to."""
    if values.dtype.kind not in "fc":
        return 1.0
    finite = np.abs(values[np.isfinite(values)])
    return max(1.0, float(scale(finite))) if finite.size else 1.0
