"""Runs a graph to see how its tensors depend on the number of rows.

To classify a user-side tensor, trials feed one, two, three and many copies of a user row;
`distrust` then corrects findings about ops whose behaviour a few trials cannot show.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import tensorflow as tf
from colcast.export.graph._colours import Colours
from colcast.export.graph._comparison import comparable
from colcast.export.graph._errors import ExportError, TooLongError
from colcast.export.graph._nodes import FlatGraph, NodeDef, data_inputs, producer
from colcast.export.graph._ops import PICK_SIZES, SHAPE_INPUTS, TAKE_DENSE_SHAPES
from colcast.export.graph._requests import Array, Columns, Request
from colcast.export.graph._sessions import Run, describe_loops

REPEATS = (2, 3, 64)
"""How often trials repeat a user row; 64 shows effects that small numbers hide."""


class RowKind(enum.Enum):
    """How a tensor depends on the number of rows."""

    ROW = "row-like"  # N rows give N copies of the result for one row
    CONSTANT = "constant"  # the same for any number of rows
    OTHER = "other"


@dataclass(frozen=True)
class Finding:
    """What trial runs showed about one tensor.

    Attributes:
        kind: its kind. For an item tensor, ROW means that the first dimension follows N.
        shape: its shape at one row; None for sizes that differ between requests.
        axis: for ROW: the dimension that follows the rows; 0 unless the model has transposed it.
        reason: for OTHER: what was observed.
        counts_rows: for OTHER: whether it may be a number of rows or a statistic over rows. Unlike
            an index, such a tensor has the same size for every number of rows, or holds floats.
    """

    kind: RowKind
    shape: tuple[int | None, ...] | None = None
    axis: int = 0
    reason: str = ""
    counts_rows: bool = False

    def is_one_row(self, rank: int | None = None) -> bool:
        """Whether the tensor has exactly one row per candidate (and `rank`, if given)."""
        if self.kind is not RowKind.ROW or self.axis or not self.shape or self.shape[0] != 1:
            return False
        return rank is None or rank == len(self.shape)


_FIRST_RUN_SECONDS = 60  # includes TensorFlow's preparation of the graph
_RUN_SECONDS = 20  # for later runs; a loop may never end on some generated rows

Findings = dict[str, Finding]


class Probe:
    """Runs tensors of a signature in a session.

    Attributes:
        names: names of the tensors.

    Raises:
        ExportError: the signature fails on a request.
        TooLongError: a run does not end.
    """

    def __init__(
        self,
        session: tf.compat.v1.Session,
        inputs: Mapping[str, str],
        tensors: Mapping[str, str],
        *,
        inner: bool = False,
    ) -> None:
        """Prepares to run the tensors.

        Args:
            session: a session with the graph.
            inputs: the tensors to feed, by name.
            tensors: the tensors to fetch, by name.
            inner: whether `tensors` are outputs of arbitrary ops rather than of signatures. An
                additional op then reads them: with oneDNN, TensorFlow 2.20's remapper fuses
                x * sigmoid(x) even if the Sigmoid is fetched, and the fetch fails; it does not fuse
                a node that another node reads.
        """
        find = session.graph.get_tensor_by_name
        self._loops = partial(describe_loops, session.graph, dict(inputs), list(tensors.values()))
        self._seconds: float = _FIRST_RUN_SECONDS
        self._inputs = list(inputs)
        self.names = list(tensors)
        fetched = [find(tensor) for tensor in tensors.values()]
        if inner and fetched:
            with session.graph.as_default():
                fetched = tf.raw_ops.IdentityN(input=fetched, name="observed")
        self._run = Run(session, list(inputs.values()), [tensor.name for tensor in fetched])

    def __call__(self, columns: Columns) -> dict[str, Array]:
        """The tensors' values for these columns, by name."""
        try:
            values = self._run([columns[name] for name in self._inputs], self._seconds)
        except tf.errors.DeadlineExceededError as error:
            done = f"the signature did not finish on generated columns within {self._seconds} s"
            raise TooLongError(f"{done}; {self._loops()}".rstrip("; ")) from error
        except tf.errors.OpError as error:
            shapes = {name: list(columns[name].shape) for name in self._inputs}
            raise ExportError(
                f"the signature fails on generated columns of shapes {shapes}: {error.message}"
            ) from error
        self._seconds = _RUN_SECONDS
        return dict(zip(self.names, map(comparable, values), strict=True))


def fetchable(graph: tf.Graph, nodes: Iterable[str]) -> dict[str, str]:
    """The tensors of nodes that a session can fetch, each under its own name."""
    return {
        tensor.name: tensor.name
        for operation in map(graph.get_operation_by_name, nodes)
        for tensor in operation.outputs
        if tensor.dtype.base_dtype not in (tf.resource, tf.variant)
        and graph.is_fetchable(operation)
    }


def classify_user(
    probe: Probe, users: Iterable[Request], tolerances: Iterable[float], tensors: Iterable[str]
) -> dict[float, Findings]:
    """Determines, for each tolerance, the kind of tensors that depend only on user features.

    Args:
        probe: runs the tensors, and possibly others.
        users: requests of the users to try; a tensor must have the same kind for all of them.
        tolerances: largest differences that count as equal, relative to a tensor's largest value,
            because sums over more rows may be added in another order.
        tensors: the tensors' names in the probe.
    """
    found: dict[float, Findings] = {tolerance: {} for tolerance in sorted(tolerances)}
    for user in users:
        single = probe(user.repeated(1))
        many = {repeats: probe(user.repeated(repeats)) for repeats in REPEATS}
        for tensor in tensors:
            value = single[tensor]
            values = {repeats: run[tensor] for repeats, run in many.items()}
            finding = Finding(RowKind.OTHER)
            for tolerance, of in found.items():
                if finding.kind is RowKind.OTHER:  # equal values also fit a larger tolerance
                    finding = _classify(value, values, tolerance)
                of[tensor] = merged(of[tensor], finding) if tensor in of else finding
    return {
        tolerance: {tensor: _settled(finding) for tensor, finding in of.items()}
        for tolerance, of in found.items()
    }


def follow_rows(probe: Probe, requests: Mapping[int, Request]) -> Findings:
    """Finds the item tensors whose first dimension follows the number of candidates.

    Args:
        probe: runs the tensors.
        requests: requests by number of candidates, with at least two different numbers.
    """
    found: Findings = {}
    for rows, request in requests.items():
        for tensor, value in probe(request.first(rows).repeated(rows)).items():
            scales = value.ndim > 0 and value.shape[0] > 0 and value.shape[0] % rows == 0
            shape = (value.shape[0] // rows, *value.shape[1:]) if scales else value.shape
            finding = Finding(RowKind.ROW if scales else RowKind.OTHER, shape)
            found[tensor] = merged(found[tensor], finding) if tensor in found else finding
    return found


def _classify(single: Array, many: Mapping[int, Array], tolerance: float) -> Finding:
    if all(equal(single, value, tolerance) for value in many.values()):
        empty = single.ndim > 0 and single.shape[0] == 0
        return Finding(RowKind.CONSTANT, single.shape, reason=_EMPTY if empty else "")
    is_float = single.dtype.kind in "fc"
    other = Finding(RowKind.OTHER, single.shape, counts_rows=is_float)
    if all(value.shape == single.shape for value in many.values()):
        reason = f"changes with the rows{_values(single, many)}"
        return replace(other, reason=reason, counts_rows=True)
    axis = _growing_axis(single, many)
    if axis is None:
        shapes = ", ".join(f"{list(value.shape)} at {rows}" for rows, value in many.items())
        return replace(other, reason=f"shape {list(single.shape)} at 1 row, {shapes}")
    for rows, value in many.items():
        if not equal(np.concatenate([single] * rows, axis), value, tolerance):
            seen = _values(single, {rows: value})
            return replace(other, reason=f"not the same row repeated at {rows} rows{seen}")
    return Finding(RowKind.ROW, single.shape, axis)


def _growing_axis(single: Array, many: Mapping[int, Array]) -> int | None:
    """The dimension whose size grows in proportion to the number of rows."""
    for axis in range(single.ndim):
        shapes = {rows: list(single.shape) for rows in many}
        for rows, shape in shapes.items():
            shape[axis] *= rows
        if all(list(value.shape) == shapes[rows] for rows, value in many.items()):
            return axis
    return None


_EMPTY = "empty on every request tried"  # such a tensor looks both row-like and constant


def merged(one: Finding, other: Finding) -> Finding:
    """Combines the findings of two requests; if a tensor is empty in one, the other counts."""
    shape = None
    if one.shape is not None and other.shape is not None and len(one.shape) == len(other.shape):
        pairs = zip(one.shape, other.shape, strict=True)
        shape = tuple(a if a == b else None for a, b in pairs)
    if shape is None:
        return Finding(RowKind.OTHER, reason="its rank differs from request to request")
    for first, second in ((one, other), (other, one)):
        if first.kind is RowKind.OTHER or second.reason == _EMPTY:
            return replace(first, shape=shape)
    if (one.kind, one.axis) != (other.kind, other.axis):
        return Finding(RowKind.OTHER, shape, reason="row-like for one user, not for another")
    return replace(one, shape=shape)


def _settled(finding: Finding) -> Finding:
    if finding.kind is RowKind.CONSTANT and finding.reason == _EMPTY:
        return replace(finding, kind=RowKind.OTHER)
    return finding


def equal(one: Array, other: Array, tolerance: float) -> bool:
    """Whether tensors are equal; the tolerance of floats is relative to the largest one."""
    if one.shape != other.shape:
        return False
    same = bool(np.all(one == other))
    if same or one.dtype.kind not in "fc":
        return same
    scale = np.max(np.abs(one), initial=0.0, where=np.isfinite(one))
    return bool(np.allclose(one, other, rtol=0, atol=tolerance * scale, equal_nan=True))


def _values(single: Array, many: Mapping[int, Array]) -> str:
    if single.size > 4:
        return ""
    shown = [
        f"{value.tolist()} at {repeats}" for repeats, value in many.items() if value.size <= 12
    ]
    return f": {single.tolist()} at 1, {', '.join(shown)}" if shown else ""


def distrust(graph: FlatGraph, colours: Colours, domain: str, findings: Findings) -> Findings:
    """Corrects findings about one domain's tensors that a few runs cannot prove.

    A tensor may depend on the row count only above the counts that were tried:
    `tf.where(rows > 1000, a, b)` looks the same for 1, 2, 3 and 64 rows. So a tensor computed from
    a number of rows, or from a float statistic over rows, counts as neither row-like nor constant.
    A tensor that only takes its shape from a number of rows is trusted.

    Args:
        graph: the signature's nodes.
        colours: their colours.
        domain: the domain.
        findings: what running the graph showed.

    Returns:
        The findings, with OTHER for each tensor computed from a number of rows.
    """
    corrected = dict(findings)
    counts: set[str] = set()  # numbers of rows, and tensors computed from them
    outputs: dict[str, list[str]] = {}
    for tensor in findings:
        outputs.setdefault(producer(tensor), []).append(tensor)
    for name, node in graph.nodes.items():
        if colours.of[name] != domain:
            continue
        computed = _computes_from(counts, node)
        picks = node.op in PICK_SIZES and graph.nodes[producer(node.input[0])].op == "Shape"
        for tensor in outputs.get(name, ()):
            finding = findings[tensor]
            if picks and finding.kind is RowKind.CONSTANT:
                continue
            if computed or finding.counts_rows:
                counts.add(tensor)
            if computed and finding.kind is not RowKind.OTHER:
                reason = "computed from a number of rows"
                corrected[tensor] = replace(finding, kind=RowKind.OTHER, reason=reason)
    return corrected


def _computes_from(counts: set[str], node: NodeDef) -> bool:
    if node.op in TAKE_DENSE_SHAPES:
        return False
    shapes = SHAPE_INPUTS.get(node.op, ())
    inputs = enumerate(data_inputs(node))
    return any(tensor in counts for position, tensor in inputs if position not in shapes)
