"""Corrects findings for what runs cannot show.

A handful of runs cannot show a dependence on the number of rows that sets in later: `tf.where(rows
> 1000, a, b)` looks the same for 1, 2, 3 and 64 rows. So a tensor computed from a number of rows,
or from floats that differ from row to row, counts as neither row-like nor constant, whatever the
runs show. A tensor that only takes its shape from a number of rows is trusted.
"""

from dataclasses import replace

from colcast.export.graph._colours import Colours
from colcast.export.graph._findings import Findings, RowKind
from colcast.export.graph._flat_graph import FlatGraph, NodeDef, data_inputs, producer
from colcast.export.graph._ops import PICK_SIZES, SHAPE_INPUTS, TAKE_DENSE_SHAPES


def distrust(graph: FlatGraph, colours: Colours, domain: str, findings: Findings) -> Findings:
    """Corrects what was found about tensors of one domain.

    Args:
        graph: the signature's nodes.
        colours: their colours.
        domain: the domain.
        findings: what running the graph showed.

    Returns:
        The findings, with OTHER for every tensor computed from a number of rows.
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
