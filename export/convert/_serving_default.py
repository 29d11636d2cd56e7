"""Makes a new signature the default for requests that name none."""

from typing import Any

from colcast.export.convert._object_graph import signature_map
from colcast.export.graph._errors import ExportError

DEFAULT = "serving_default"
FORMER = "serving_examples"


def make_default(meta_graph: Any, name: str) -> None:
    """Also gives a signature the name `serving_default`; the old default is renamed to `FORMER`.

    Raises:
      ExportError: a signature `FORMER` exists already.
    """
    definitions = meta_graph.signature_def
    if FORMER in definitions:
        raise ExportError(
            f"the present {DEFAULT!r} would be kept as {FORMER!r}, which the model has already"
        )
    if DEFAULT in definitions:
        definitions[FORMER].CopyFrom(definitions[DEFAULT])
    definitions[DEFAULT].CopyFrom(definitions[name])
    signatures = signature_map(meta_graph.object_graph_def)
    if signatures is None:
        return
    ids = {child.local_name: child.node_id for child in signatures.children}
    for child in signatures.children:
        if child.local_name == DEFAULT:
            child.local_name = FORMER
    if name in ids:
        signatures.children.add(node_id=ids[name], local_name=DEFAULT)
