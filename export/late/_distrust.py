"""What a handful of runs cannot show: dependence on the number of rows that sets in later.

`tf.where(rows > 1000, a, b)` looks the same at 1, 2, 3 and 64 rows. So whatever is computed from a
number of rows, or from floats that differ from row to row, counts as neither row-like nor
constant, however it looks; only what merely takes its shape from a number of rows is trusted.
"""

from dataclasses import replace

from colcast.export.late._findings import Findings, Kind
from colcast.export.late._flat_graph import FlatGraph, NodeDef, data_inputs, producer
from colcast.export.late._sides import Side, Sides

# Inputs from which an op takes no more than the shape of its output, by position.
_SHAPES = {
    "Bincount": (1,), "BroadcastTo": (1,), "DenseBincount": (1,), "Empty": (0,),
    "EmptyTensorList": (0, 1), "Fill": (0,), "LinSpace": (2,), "OneHot": (1,), "Pad": (1,),
    "PadV2": (1,), "RaggedTensorToTensor": (0, 3), "Range": (0, 1, 2), "Reshape": (1,),
    "ScatterNd": (2,), "SegmentSumV2": (2,), "Slice": (1, 2), "SparseFillEmptyRows": (2,),
    "SparseReduceSum": (2,), "SparseReorder": (2,), "SparseReshape": (1, 2),
    "SparseSegmentMeanWithNumSegments": (3,), "SparseSegmentSqrtNWithNumSegments": (3,),
    "SparseSegmentSumWithNumSegments": (3,), "SparseSlice": (2, 3, 4),
    "SparseTensorDenseMatMul": (2,), "SparseToDense": (1,), "StridedSlice": (1, 2, 3),
    "TensorListFromTensor": (1,), "TensorListReserve": (0, 1), "TensorListStack": (1,),
    "Tile": (1,), "UnsortedSegmentMax": (2,), "UnsortedSegmentMin": (2,),
    "UnsortedSegmentProd": (2,), "UnsortedSegmentSum": (2,),
}  # fmt: skip
# They take dense shapes of sparse tensors, at positions that depend on how many there are.
_SPARSE = {"SparseConcat", "SparseCross", "SparseCrossHashed", "SparseCrossV2", "SparseSplit"}
# What they pick of a shape may be a size that is none of rows.
_PICKS = {"GatherV2", "Slice", "SplitV", "StridedSlice", "Unpack"}


def distrust(graph: FlatGraph, sides: Sides, findings: Findings) -> Findings:
    """Corrects what was found about tensors of the user's side.

    Args:
        graph: the signature's nodes.
        sides: their sides.
        findings: what running the graph showed.

    Returns:
        The findings, with OTHER for tensors computed from a number of rows.
    """
    corrected = dict(findings)
    counts: set[str] = set()  # numbers of rows, and what is computed from them
    outputs: dict[str, list[str]] = {}
    for tensor in findings:
        outputs.setdefault(producer(tensor), []).append(tensor)
    for name, node in graph.nodes.items():
        if sides.of[name] is not Side.USER:
            continue
        computed = _computes_from(counts, node)
        picks = node.op in _PICKS and graph.nodes[producer(node.input[0])].op == "Shape"
        for tensor in outputs.get(name, ()):
            finding = findings[tensor]
            if picks and finding.kind is Kind.CONSTANT:
                continue
            if computed or finding.counts_rows:
                counts.add(tensor)
            if computed and finding.kind is not Kind.OTHER:
                reason = "computed from a number of rows"
                corrected[tensor] = replace(finding, kind=Kind.OTHER, reason=reason)
    return corrected


def _computes_from(counts: set[str], node: NodeDef) -> bool:
    if node.op in _SPARSE:
        return False
    shapes = _SHAPES.get(node.op, ())
    inputs = enumerate(data_inputs(node))
    return any(tensor in counts for position, tensor in inputs if position not in shapes)
