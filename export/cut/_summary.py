"""Makes the report of a late signature from its graph."""

from collections.abc import Mapping

import tensorflow as tf
from colcast.export.cut._late_graph import LateGraph
from colcast.export.cut._late_report import FrontierTensor, LateReport
from colcast.export.cut._products import Products
from colcast.export.cut._timing import op_times
from colcast.export.graph._colours import FREE, USER, Colours
from colcast.export.graph._comparison import Differences
from colcast.export.graph._findings import RowKind
from colcast.export.graph._flat_graph import FlatGraph, GraphDef, data_inputs, producer
from colcast.export.graph._nodes import ancestors
from colcast.export.graph._requests import Request
from colcast.export.graph._signature import Signature


class Summary:
    """What the new graph moved and what it did not.

    Attributes:
        moved: nodes of the columnar signature that now run once per request.
        frontier: the user's tensors that ops at N rows read, in the graph's order.
        refused: tensors and ops that read only the user but run at N rows, with the reason.
    """

    def __init__(
        self, graph: FlatGraph, colours: Colours, late: LateGraph, added: GraphDef
    ) -> None:
        """Takes the original graph, its colours, the late graph and the nodes that it added."""
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
            name: late.finding(f"{name}:0").reason or "not looked at"
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
        request: Request,
        products: Products,
        proof: Differences,
    ) -> LateReport:
        """The report, with op times measured on a request."""
        rows = len(next(iter(request.items.values())))
        columnar, late = signatures
        before, after = op_times(
            session, [(columnar, request.repeated(rows)), (late, request.once())]
        )
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
            timed_rows=rows,
            frontier=self.frontier,
            refused=self.refused | products.refused,
            split_products=tuple(products.names),
            proof=proof,
            slowest_refused=self._slowest_refused(columnar, before),
        )

    def _slowest_refused(self, columnar: Signature, before: Mapping[str, float]) -> str:
        """The slowest op that stays at N rows, the user features that it reads, and the reason."""
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
