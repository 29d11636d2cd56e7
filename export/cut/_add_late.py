"""Adds a late signature to a MetaGraph: writes it and proves it."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import tensorflow as tf
from colcast.export.cut._findings import RowKind
from colcast.export.cut._late_graph import LateGraph
from colcast.export.cut._late_report import FrontierTensor, LateReport
from colcast.export.cut._observed import Observed
from colcast.export.cut._products import Products
from colcast.export.cut._timing import op_times
from colcast.export.cut._write_late import write_late
from colcast.export.graph._colours import FREE, PAIR, USER, Colours
from colcast.export.graph._comparison import Differences
from colcast.export.graph._emitter import add_nodes, import_nodes
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import FlatGraph, GraphDef, ancestors, data_inputs, producer
from colcast.export.graph._ops import MODULE
from colcast.export.graph._probe import Probe
from colcast.export.graph._signature import Signature
from colcast.export.trials._rows import Rows


class _Summary:
    """Which ops a late graph runs once per request, and which stay at N rows.

    Attributes:
        moved: nodes of the columnar signature that now run once per request.
        frontier: the user's tensors that ops at N rows read, in the graph's order.
        refused: tensors and ops that read only user columns but run at N rows, with the reason.
    """

    def __init__(
        self, graph: FlatGraph, colours: Colours, late: LateGraph, added: GraphDef
    ) -> None:
        """Compares the original graph with `added`, the nodes that the late graph added."""
        names = {node.name for node in added.node}
        self._nodes, self._colours, self._late = graph.nodes, colours, late
        ops = [name for name in graph.nodes if not late.is_input(name)]
        self._ops = sum(colours.of[name] != FREE for name in ops)
        self.moved = {
            name
            for name in ops
            if USER in colours.reads[name] and late.emit.name("user", name) in names
        }
        self.frontier = self._frontier(added)
        self.refused = dict(colours.held) | {
            name: late.finding(f"{name}:0").reason or "not observed"
            for name, of in colours.of.items()
            if of == USER and late.emit.name("item", name) in names
        }

    def suspect(self) -> str:
        """The frontier tensor accepted last, for an error message."""
        if not self.frontier:
            return "none"
        last = self.frontier[-1]
        return f"{last.name} ({last.dtype} {list(last.shape)} at one row, {last.how})"

    def report(
        self,
        session: tf.compat.v1.Session,
        name: str,
        signatures: tuple[Signature, Signature],
        request: Rows,
        products: Products,
        proof: Differences,
    ) -> LateReport:
        """Measures op times on a request, and returns the report."""
        columnar, late = signatures
        before, after = op_times(session, [(columnar, request.columns()), (late, request.once())])
        moved = sum(time for op, time in before.items() if op in self.moved)
        total = sum(before.values())
        return LateReport(
            signature=name,
            user_features=tuple(columnar.user),
            item_features=tuple(columnar.items),
            ops=self._ops,
            user_ops=len(self.moved),
            user_time_share=moved / total if total else 0.0,
            columnar_ms=total,
            late_ms=sum(after.values()),
            timed_rows=len(request),
            frontier=self.frontier,
            refused=self.refused | products.refused,
            split_products=tuple(products.names),
            proof=proof,
            slowest_refused=self._slowest_refused(columnar, before),
        )

    def _slowest_refused(self, columnar: Signature, before: Mapping[str, float]) -> str:
        """A sentence about the slowest op that stays at N rows; "" if none takes time."""
        taken = {
            name: sum(
                time for op, time in before.items() if op == name or op.startswith(f"{name}/")
            )
            for name in self.refused
        }
        slowest = max(taken, key=taken.__getitem__, default="")
        if not taken.get(slowest):
            return ""
        read = ancestors(self._nodes, [slowest])
        features = [name for name, tensor in columnar.user.items() if producer(tensor) in read]
        over = f" over {', '.join(features[:3])}" if features else ""
        return f"{slowest}{over} stays at N rows: {self.refused[slowest]}"

    def _frontier(self, added: GraphDef) -> tuple[FrontierTensor, ...]:
        emit = self._late.emit
        readers: dict[str, set[str]] = {}
        for node in added.node:
            for source in data_inputs(node):
                readers.setdefault(source, set()).add(node.name)
        found = []
        for name, of in self._colours.of.items():
            for tensor in self._late.tensors_of(name) if of == USER else ():
                read_by = readers.get(self._late.once(tensor), ())
                how = {self._how(tensor, folder) for folder in map(emit.folder, read_by)} - {""}
                if how:
                    found.append(self._tensor(tensor, " and ".join(sorted(how))))
        return tuple(found)

    def _how(self, tensor: str, folder: str) -> str:
        if folder == "expand":
            return "repeated"
        if folder == "split":
            return "split"
        if folder not in ("item", "outputs"):
            return ""
        kinds = {RowKind.CONSTANT: "constant", RowKind.ROW: "broadcast", RowKind.OTHER: "shape"}
        return kinds[self._late.finding(tensor).kind]

    def _tensor(self, tensor: str, how: str) -> FrontierTensor:
        shape = self._late.finding(tensor).shape or ()
        return FrontierTensor(tensor, self._late.dtype(tensor).name, shape, how)


def add_late_signature(
    meta_graph: Any,
    observed: Observed,
    *,
    late_signature: str = "columnar_late",
    least_gain: float = -math.inf,
) -> LateReport:
    """Adds a signature that computes the user part of a model once per request.

    Only adds nodes, all named under `late_signature`; they share variables, tables and constants
    with existing nodes. The new signature has the columnar signature's inputs and outputs; its user
    inputs have one row. It is added only if it gives the same results on drawn requests.

    Args:
        meta_graph: MetaGraphDef with the columnar signature; changed in place. The session's graph
            gets the new nodes too.
        observed: the columnar signature and its trial runs. If it is `exact`, products are not
            split, and the proof allows no difference.
        late_signature: the name of the new signature.
        least_gain: the share of the op time that the new signature must save.

    Returns:
        The report: which ops moved, which did not and why, and the differences in the proof.

    Raises:
        ExportError: the name is taken; the proof fails; nothing can move while results stay
            `exact`; an XLA-compiled op reads both user and items; or the gain is less than
            `least_gain`. `meta_graph` is then unchanged.
    """
    session, signature = observed.session, observed.signature
    _check_free(meta_graph, late_signature)
    late, products = write_late(observed, late_signature)
    new, added = late.finish(signature), late.added()
    import_nodes(session.graph, added)
    summary = _Summary(observed.graph, observed.colours, late, added)
    if all(observed.graph.nodes[name].op == "Identity" for name in summary.moved):
        _check_compiled(observed)
    if observed.exact and not summary.moved:
        raise ExportError("no user op can run once with bit-identical results")
    differences, moderated = observed.proof.compare(
        Probe(session, new.inputs, new.outputs), observed.tolerance, summary.suspect()
    )
    report = summary.report(
        session, late_signature, (signature, new), observed.proof.timed, products, differences
    )
    report = replace(report, moderated=moderated)
    if report.gain < least_gain:
        raise ExportError(
            f"it would take {report.late_ms:.2f} ms instead of {report.columnar_ms:.2f} ms at"
            f" {report.timed_rows} candidates"
        )
    add_nodes(meta_graph, added.node)
    _publish(meta_graph, observed.name, late_signature, new)
    published = {f"{node.name}:0" for node in added.node}
    kept = {key: rows for key, rows in products.kernel_rows.items() if rows in published}
    observed.kernel_rows.update(kept)
    return report


def _check_free(meta_graph: Any, name: str) -> None:
    if name in meta_graph.signature_def:
        raise ExportError(f"the model has a signature {name!r} already; choose another name")
    if any(node.name.startswith(f"{name}/") for node in meta_graph.graph_def.node):
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
