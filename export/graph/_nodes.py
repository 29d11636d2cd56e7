"""GraphDef nodes by name: references, closures, constants. Independent of features."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from colcast.export.graph._errors import ExportError
from colcast.export.graph._sessions import session_config

Nodes = Mapping[str, Any]  # NodeDef by name


def producer(reference: str) -> str:
    """The node of a tensor or of a control input: `a` for `a`, `a:1` and `^a`."""
    return reference.removeprefix("^").partition(":")[0]


def canonical(reference: str) -> str:
    """The spelling that GraphDef uses for inputs: `a` rather than `a:0`."""
    return reference.removesuffix(":0")


def scope_name(name: str) -> str:
    """The closest valid name for a node."""
    return re.sub(r"^[^A-Za-z0-9.]|[^A-Za-z0-9_./\\-]", "_", name).lstrip("_/") or "column"


def output_index(reference: str) -> int:
    """The index of the output to which a tensor name refers."""
    return int(reference.partition(":")[2] or 0)


def ancestors(
    nodes: Nodes,
    references: Iterable[str],
    stop: Collection[str] = (),
    controls: bool = True,
) -> set[str]:
    """Names of all nodes that the references need, including themselves but not `stop` nodes.

    Without `controls`, control inputs are not followed.
    """
    found: set[str] = set()
    queue = [producer(reference) for reference in references]
    while queue:
        name = queue.pop()
        if name in found or name in stop:
            continue
        if name not in nodes:
            raise ExportError(f"the graph has no node {name!r}, which another node takes as input")
        found.add(name)
        queue.extend(
            producer(reference)
            for reference in nodes[name].input
            if controls or not reference.startswith("^")
        )
    return found


def consumers(nodes: Nodes) -> dict[str, list[str]]:
    """The nodes that read each node, by its name."""
    reading: dict[str, list[str]] = {name: [] for name in nodes}
    for name, node in nodes.items():
        for reference in node.input:
            reading.setdefault(producer(reference), []).append(name)
    return reading


def descendants(nodes: Nodes, roots: Iterable[str]) -> set[str]:
    """Names of all nodes that depend on the roots by data or control, without the roots."""
    reading = consumers(nodes)
    found: set[str] = set()
    queue = list(roots)
    while queue:
        for reader in reading.get(queue.pop(), ()):
            if reader not in found:
                found.add(reader)
                queue.append(reader)
    return found


def rewire(node: Any, rename: Callable[[str], str | None]) -> None:
    """Replaces every input of a NodeDef by rename(input), or drops it if that is None."""
    renamed = [new for reference in node.input if (new := rename(reference))]
    del node.input[:]
    node.input.extend(reference for reference in renamed if not reference.startswith("^"))
    node.input.extend(dict.fromkeys(r for r in renamed if r.startswith("^")))


def constants(nodes: Nodes, references: Sequence[str], versions: Any) -> list[Any]:
    """Values of tensors that depend only on constants, as numpy arrays.

    Raises:
      ExportError: a tensor depends on an input, a variable or a table.
    """
    if not references:
        return []
    graph_def = tf.compat.v1.GraphDef(versions=versions)
    for name in ancestors(nodes, references, controls=False):
        if nodes[name].op in ("Placeholder", "VarHandleOp", "VariableV2", "HashTableV2"):
            raise ExportError(f"expected a constant, found that it depends on {name!r}")
        node = graph_def.node.add()
        node.CopyFrom(nodes[name])
        rewire(node, lambda reference: None if reference.startswith("^") else reference)
    config = session_config()
    with (
        tf.Graph().as_default() as graph,
        tf.compat.v1.Session(graph=graph, config=config) as session,
    ):
        tf.import_graph_def(graph_def, name="")
        names = [r if ":" in r else f"{r}:0" for r in references]
        return list(session.run(names))
