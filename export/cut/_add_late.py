"""Adds a late signature to a MetaGraph: search, rewriting, proof."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import tensorflow as tf
from colcast.export._compiled import MODULE
from colcast.export._errors import ExportError
from colcast.export.cut import _rules
from colcast.export.cut._frontier import find_frontier
from colcast.export.cut._late_graph import LateGraph
from colcast.export.cut._late_proof import prove
from colcast.export.cut._late_report import LateReport
from colcast.export.cut._products import Products
from colcast.export.cut._split import Splits
from colcast.export.cut._summary import Summary
from colcast.export.graph._add_nodes import add_nodes, import_nodes
from colcast.export.graph._colours import PAIR, USER, Colours, colour
from colcast.export.graph._findings import REPEATS, Probe
from colcast.export.graph._flat_graph import FlatGraph, NodeDef, producer
from colcast.export.graph._requests import DrawRows, Requests, without_a_value
from colcast.export.graph._signature import Signature, read_signature

Rule = Callable[[NodeDef], bool]  # writes a node of the item side, or leaves it alone: False

_USERS = 8  # users that tensors are classified with
_TIMED_ROWS = 100
_NO_VALUE = "0 or empty in all generated rows, so nothing shows what it does"
_RULES = (_rules.broadcast, _rules.concat, _rules.pack, _rules.add_n)
_EXACT_RULES = (_rules.broadcast_exactly, _rules.concat, _rules.pack)


def add_late_signature(
    meta_graph: Any,
    session: tf.compat.v1.Session,
    *,
    user_features: Collection[str],
    rows: DrawRows,
    bold_rows: DrawRows | None = None,
    columnar_signature: str = "columnar",
    late_signature: str = "columnar_late",
    exact: bool = False,
    tolerance: float = 1e-5,
    least_gain: float = -math.inf,
    most_constant_bytes: int = 256 << 20,
) -> LateReport:
    """Adds a signature that computes the user's part of a model once per request.

    Nodes are only added, all under `late_signature`; they share variables, tables and constants
    with the present ones. Inputs and outputs are the columnar signature's, user inputs with one
    row. The signature is proven equal on requests drawn from `rows` before it is added.

    Args:
        meta_graph: MetaGraphDef with a flat columnar signature; changed in place.
        session: an initialised session on the same graph. Its graph gets the new nodes too.
        user_features: features that are the same on every row of a request; a feature `f` brings
            its column `f/length` along.
        rows: gives rows to try things out: `rows(n)` are n rows of every columnar input, new ones
            on each call. They should show all that can differ: empty and long lists, unknown
            words, zeros, negative numbers, large ids.
        bold_rows: gives rows that the model may score NaN, where `rows` gives none; what depends
            on the user is watched on both, and only `rows` prove.
        columnar_signature: the signature to start from.
        late_signature: the signature to add.
        exact: move only what leaves every output the same to the last bit; then products are not
            split, and the proof allows no difference.
        tolerance: largest relative difference of float outputs, if not `exact`.
        least_gain: a signature that saves a smaller share of the op time is not added.
        most_constant_bytes: how much of the weights may be written anew as constants, where user
            and item rows of a kernel interleave.

    Returns:
        What was moved, what was not and why, and the proof's differences.

    Raises:
        ExportError: a name is wrong, every feature is the user's, the proof fails, nothing can be
            moved and stay `exact`, what XLA compiles reads user and items, or what it saves is
            less than `least_gain`. Then `meta_graph` is as it was.
    """
    _check_free(meta_graph, session.graph, late_signature)
    signature = read_signature(meta_graph, columnar_signature, user_features)
    columnar = Probe(session, signature.inputs, signature.outputs)
    requests = Requests(rows, signature.user, signature.items, columnar)
    graph = FlatGraph(meta_graph, signature.outputs.values())
    users = [requests.draw(max(REPEATS)) for _ in range(_USERS)]
    if bold_rows is not None:
        bold = Requests(bold_rows, signature.user, signature.items, columnar)
        users += [bold.draw(max(REPEATS)) for _ in range(_USERS)]
    colours = colour(
        graph,
        {USER: signature.once.values(), PAIR: signature.items.values()},
        held={producer(signature.user[name]): _NO_VALUE for name in without_a_value(users)},
        waiting=USER,
        exact=exact,
    )
    tolerance = 0.0 if exact else tolerance
    findings = find_frontier(session, graph, signature, colours, users, requests, tolerance)
    late = LateGraph(graph, colours, findings, signature, session, late_signature)
    late.place_inputs(signature)
    products = Products(late, Splits(late), most_constant_bytes)
    rules = [partial(rule, late) for rule in (_EXACT_RULES if exact else _RULES)]
    _write(late, graph, colours, rules if exact else [products.write, *rules])
    new, added = late.finish(signature), late.added()
    import_nodes(session.graph, added)
    summary = Summary(graph, colours, late, added)
    if not summary.moved:
        _check_compiled(graph, colours)
    if exact and not summary.moved:
        raise ExportError("no op of the user's can run once and give the same bits")
    differences, moderated = prove(
        columnar,
        Probe(session, new.inputs, new.outputs),
        requests,
        tolerance,
        summary.suspect(),
    )
    request = requests.draw(_TIMED_ROWS)
    report = summary.report(
        session, late_signature, (signature, new), request, products, differences
    )
    report = replace(report, moderated=moderated)
    if report.gain < least_gain:
        raise ExportError(
            f"it would take {report.late_ms:.2f} ms in place of {report.columnar_ms:.2f} ms at"
            f" {report.timed_rows} candidates"
        )
    add_nodes(meta_graph, added.node)
    _publish(meta_graph, columnar_signature, late_signature, new)
    return report


def _check_free(meta_graph: Any, graph: tf.Graph, name: str) -> None:
    if name in meta_graph.signature_def:
        raise ExportError(f"the model has a signature {name!r} already; choose another name")
    if any(operation.name.startswith(f"{name}/") for operation in graph.get_operations()):
        raise ExportError(f"the graph has nodes under {name!r} already; choose another name")


def _check_compiled(graph: FlatGraph, colours: Colours) -> None:
    """Raises ExportError if an op that is compiled as a whole takes the user and items together."""
    for name, node in graph.nodes.items():
        if node.op == MODULE and {USER, PAIR} <= colours.reads[name]:
            raise ExportError(
                f"--late gains nothing: {name!r} ({node.op}) takes features of the user and of"
                " items, and XLA compiles it as a whole, so no part of it can run once, and no"
                " rule says how it treats rows. Export the model with ops that are not compiled:"
                " jax2tf.convert(..., native_serialization=False, enable_xla=False), up to JAX 0.6,"
                " or Keras on the TensorFlow backend with the same weights (docs/models.md)"
            )


def _write(late: LateGraph, graph: FlatGraph, colours: Colours, rules: Sequence[Rule]) -> None:
    for name, node in graph.nodes.items():
        if late.is_input(name):
            continue
        if colours.of[name] == USER:
            late.write_user(node)
        elif colours.of[name] == PAIR and not any(rule(node) for rule in rules):
            late.write_item(node)


def _publish(meta_graph: Any, columnar: str, name: str, new: Signature) -> None:
    source = meta_graph.signature_def[columnar]
    signature = meta_graph.signature_def[name]
    signature.CopyFrom(source)
    for key, info in signature.inputs.items():
        info.name = new.inputs[key]
        if key in new.user:
            info.tensor_shape.dim[0].size = 1
    for key, info in signature.outputs.items():
        info.name = new.outputs[key]
