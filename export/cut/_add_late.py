"""Adds a late signature to a MetaGraph: writes it and proves it."""

import math
from dataclasses import replace
from typing import Any

import tensorflow as tf
from colcast.export.cut._late_report import LateReport
from colcast.export.cut._observed import Observed
from colcast.export.cut._summary import Summary
from colcast.export.cut._write_late import MOST_GATHERED_BYTES, write_late
from colcast.export.graph._add_nodes import add_nodes, import_nodes
from colcast.export.graph._colours import PAIR, USER
from colcast.export.graph._errors import ExportError
from colcast.export.graph._findings import Probe
from colcast.export.graph._ops import MODULE
from colcast.export.graph._signature import Signature


def add_late_signature(
    meta_graph: Any,
    observed: Observed,
    *,
    late_signature: str = "columnar_late",
    least_gain: float = -math.inf,
    most_gathered_bytes: int = MOST_GATHERED_BYTES,
) -> LateReport:
    """Adds a signature that computes the user part of a model once per request.

    Only adds nodes, all named under `late_signature`; they share variables, tables and constants
    with existing ones. Inputs and outputs are those of the columnar signature, with one row for
    user inputs. The signature is proved equal on drawn requests before it is added.

    Args:
        meta_graph: MetaGraphDef with the columnar signature; changed in place. The session's graph
            gets the new nodes too.
        observed: the observed columnar signature. If it is `exact`, products are not split, and the
            proof allows no difference.
        late_signature: the name of the new signature.
        least_gain: a signature that saves a smaller share of the op time is not added.
        most_gathered_bytes: how many bytes of weights may be gathered where user and item rows of a
            kernel interleave.

    Returns:
        What was moved, what was not and why, and the differences in the proof.

    Raises:
        ExportError: the name is taken; the proof fails; nothing can move while results stay
            `exact`; an XLA-compiled op reads both user and items; or the gain is less than
            `least_gain`. `meta_graph` is then unchanged.
    """
    session, signature = observed.session, observed.signature
    _check_free(meta_graph, session.graph, late_signature)
    late, products = write_late(observed, late_signature, most_gathered_bytes=most_gathered_bytes)
    new, added = late.finish(signature), late.added()
    import_nodes(session.graph, added)
    summary = Summary(observed.graph, observed.colours, late, added)
    if not summary.moved:
        _check_compiled(observed)
    if observed.exact and not summary.moved:
        raise ExportError("no op of the user's can run once and give the same bits")
    differences, moderated = observed.proof.compare(
        Probe(session, new.inputs, new.outputs), observed.tolerance, summary.suspect()
    )
    report = summary.report(
        session, late_signature, (signature, new), observed.proof.timed, products, differences
    )
    report = replace(report, moderated=moderated)
    if report.gain < least_gain:
        raise ExportError(
            f"it would take {report.late_ms:.2f} ms in place of {report.columnar_ms:.2f} ms at"
            f" {report.timed_rows} candidates"
        )
    add_nodes(meta_graph, added.node)
    _publish(meta_graph, observed.name, late_signature, new)
    published = {f"{node.name}:0" for node in added.node}
    kept = {key: rows for key, rows in products.kernel_rows.items() if rows in published}
    observed.kernel_rows.update(kept)
    return report


def _check_free(meta_graph: Any, graph: tf.Graph, name: str) -> None:
    if name in meta_graph.signature_def:
        raise ExportError(f"the model has a signature {name!r} already; choose another name")
    if any(operation.name.startswith(f"{name}/") for operation in graph.get_operations()):
        raise ExportError(f"the graph has nodes under {name!r} already; choose another name")


def _check_compiled(observed: Observed) -> None:
    """Raises ExportError if an XLA-compiled op reads both the user and items."""
    for name, node in observed.graph.nodes.items():
        if node.op == MODULE and {USER, PAIR} <= observed.colours.reads[name]:
            raise ExportError(
                f"--late gains nothing: {name!r} ({node.op}) takes features of the user and of"
                " items, and XLA compiles it as a whole, so no part of it can run once, and no"
                " rule says how it treats rows. Export the model with ops that are not compiled:"
                " jax2tf.convert(..., native_serialization=False, enable_xla=False), up to JAX 0.6,"
                " or Keras on the TensorFlow backend with the same weights (docs/models.md)"
            )


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
