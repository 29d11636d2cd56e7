"""Values that a model treats specially: keys of lookup tables, bucket boundaries.

Generated rows include them, because other values would only reach a model's "unknown" branch.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from colcast.export.convert._features import Scalar
from colcast.export.convert._flatten import flatten
from colcast.export.convert._folder import initial_ops
from colcast.export.convert._signature import Conversion
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import ancestors, constants, consumers, descendants, producer

_FROM_FILE = ("InitializeTableFromTextFileV2", "InitializeTableFromTextFile")
_FROM_KEYS = ("InitializeTableV2", "InitializeTable", "LookupTableImportV2", "LookupTableImport")
_FIND = ("LookupTableFindV2", "LookupTableFind")
_BUCKETIZE = ("Bucketize", "BoostedTreesBucketize")
_MOST_KEYS = 10_000
_STOP = (*_FIND, *_BUCKETIZE, "MatMul", "BatchMatMulV2")


def known_values(
    meta_graph: Any, conversion: Conversion, assets: Path
) -> dict[str, tuple[Scalar, ...]]:
    """Finds the values that the graph looks up, by feature.

    Args:
      meta_graph: MetaGraphDef with the conversion's columnar signature.
      conversion: the conversion with the features.
      assets: the model's assets folder.
    """
    keys = _table_keys(meta_graph, assets)
    inputs = meta_graph.signature_def[conversion.name].inputs
    nodes = {node.name: node for node in meta_graph.graph_def.node}
    reading = consumers(nodes)
    ends = {name for name, node in nodes.items() if node.op in _STOP}
    found: dict[str, tuple[Scalar, ...]] = {}
    for feature in conversion.features:
        values: dict[Scalar, None] = {}
        # The nodes after a placeholder, up to where its values are looked up or multiplied.
        for name in descendants(reading, [producer(inputs[feature.name].name)], ends):
            node = nodes[name]
            if node.op in _FIND:
                values.update(dict.fromkeys(keys.get(_table(nodes, node.input[0]), ())))
            elif node.op == "Bucketize":
                values.update(dict.fromkeys(node.attr["boundaries"].list.f))
        if values:
            found[feature.name] = tuple(values)
    return found


def _table(nodes: Mapping[str, Any], reference: str) -> str:
    name = producer(reference)
    while nodes[name].op == "Identity":
        name = producer(nodes[name].input[0])
    return name


def _table_keys(meta_graph: Any, assets: Path) -> dict[str, tuple[Scalar, ...]]:
    """The keys that initialize each table, by the node of its handle."""
    nodes = _initial_nodes(meta_graph)
    files = {producer(a.tensor_info.name): a.filename for a in meta_graph.asset_file_def}
    keys: dict[str, tuple[Scalar, ...]] = {}
    for node in nodes.values():
        if node.op in _FROM_FILE:
            read = {files[name] for name in ancestors(nodes, node.input[1:2]) if name in files}
            found = [line for file in read for line in _lines(assets / file, node)]
        elif node.op in _FROM_KEYS:
            try:
                found = constants(nodes, [node.input[1]], meta_graph.graph_def.versions)[0].tolist()
            except ExportError:  # computed keys: nothing to draw from
                found = []
        else:
            continue
        table = _table(nodes, node.input[0])
        keys[table] = (*keys.get(table, ()), *found[:_MOST_KEYS])
    return keys


def _initial_nodes(meta_graph: Any) -> dict[str, Any]:
    """The MetaGraph's nodes, including its flattened initialisers."""
    nodes = {node.name: node for node in meta_graph.graph_def.node}
    for name in initial_ops(meta_graph):
        nodes.update(flatten(meta_graph, [name]).nodes)
    return nodes


def _lines(path: Path, node: Any) -> Iterable[Scalar]:
    """The keys in a vocabulary file: whole lines (key index -2) or one of their fields."""
    index = node.attr["key_index"].i
    delimiter = node.attr["delimiter"].s or b"\t"
    with path.open("rb") as file:
        for _, line in zip(range(_MOST_KEYS), file, strict=False):
            text = line.rstrip(b"\r\n")
            yield text if index < 0 else text.split(delimiter)[index]
