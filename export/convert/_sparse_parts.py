"""Finds inputs that are parts of a sparse or ragged tensor: they do not have one row per candidate.

An input is a part if it is, unchanged but for its dtype and trailing shape, an argument such as the
indices of an op. The server does the same when it loads a model (server/engine/row_trials.cc).
"""

from collections.abc import Mapping
from typing import Any

from colcast.export.graph._nodes import attribute, consumers, data_inputs, producer
from colcast.export.graph._op_defs import OpDefs

_SPLITS = "row splits of a ragged feature"
_INDICES, _VALUES, _SHAPE = (
    f"{part} of a sparse feature" for part in ("indices", "values", "shape")
)
_KEEP_ROWS = frozenset(
    {"Cast", "CheckNumerics", "EnsureShape", "ExpandDims", "Identity", "PreventGradient", "Reshape",
     "Snapshot", "Squeeze", "StopGradient", "StridedSlice"}
)  # fmt: skip
# The end of an argument's name -> its role, in all ops and in ops on sparse tensors.
_ROLES = {"splits": _SPLITS, "row_partition_tensors": _SPLITS,
          "rowids": "row ids of a ragged feature", "segment_ids": "segment ids"}  # fmt: skip
_SPARSE_ROLES = {"indices": _INDICES, "values": _VALUES, "shape": _SHAPE, "shapes": _SHAPE}


def find_parts(meta_graph: Any, signature_def: Any, nodes: Mapping[str, Any]) -> dict[str, str]:
    """Returns the role of each input that is a part of a sparse or ragged tensor.

    Args:
      meta_graph: the model.
      signature_def: the signature's inputs and outputs.
      nodes: the nodes that the outputs need, with all calls inlined.
    """
    readers, op_defs = consumers(nodes), OpDefs(meta_graph)
    parts: dict[str, str] = {}
    for name, info in signature_def.inputs.items():
        role = _role(producer(info.name), nodes, readers, op_defs)
        if role is not None:
            parts[name] = role
    if set(parts.values()) <= {_VALUES}:  # of a sparse tensor that the model makes of a column
        return {}
    for name in signature_def.inputs:  # as tf.saved_model.save names them
        if parts.get(f"{name}_1") == _SPLITS:
            parts.setdefault(name, "values of a ragged feature")
    return parts


def _role(
    name: str, nodes: Mapping[str, Any], readers: Mapping[str, Any], op_defs: OpDefs
) -> str | None:
    """The role in which an op reads the tensor of a node."""
    open_ = [name]
    for current in open_:  # grows
        for reader in map(nodes.__getitem__, dict.fromkeys(readers.get(current, ()))):
            data = list(map(producer, data_inputs(reader)))
            for position in (i for i, each in enumerate(data) if each == current):
                if (role := _role_at(reader, position, op_defs)) is not None:
                    return role
            if data and data[0] == current and reader.op in _KEEP_ROWS:
                open_.append(reader.name)
    return None


def _role_at(node: Any, position: int, op_defs: OpDefs) -> str | None:
    if node.op == "StridedSlice":
        return _SPLITS if position == 0 and _slices_rows(node) else None
    argument = op_defs.input_at(node, position)
    sparse = "Sparse" in node.op and not any(k in node.op for k in ("SparseSegment", "SparseApply"))
    roles = _ROLES | (_SPARSE_ROLES if sparse else {})
    return next((role for end, role in roles.items() if argument.endswith(end)), None)


def _slices_rows(node: Any) -> bool:
    """Whether a StridedSlice takes a range of rows, as splits[1:] does."""
    begin, end, *others = (
        attribute(node, f"{mask}_mask").i & 1
        for mask in ("begin", "end", "shrink_axis", "new_axis", "ellipsis")
    )
    return not ((begin and end) or any(others))
