"""Names the loops of a signature and their inputs, for messages about runs that do not end."""

from collections.abc import Iterable, Mapping
from typing import Any

_LOOPS = ("While", "StatelessWhile", "LoopCond", "Map", "MapDefun")
_SHOWN = 3


def loops_told(graph: Any, inputs: Mapping[str, str], outputs: Iterable[str]) -> str:
    """Names the loops on which outputs depend, each with the inputs it reads; "" if there is none.

    Args:
      graph: a tf.Graph without function calls around the loops.
      inputs: names to tensors.
      outputs: tensors.
    """
    names = {graph.get_tensor_by_name(tensor).op: name for name, tensor in inputs.items()}
    behind = _behind(graph.get_tensor_by_name(tensor).op for tensor in outputs)
    loops = []
    for op in sorted((op for op in behind if op.type in _LOOPS), key=lambda op: str(op.name)):
        read = sorted(names[source] for source in _behind([op]) if source in names)
        loops.append(f"{op.name} ({op.type}) over {', '.join(read) or 'no input'}")
    if not loops:
        return ""
    more = f" and {len(loops) - _SHOWN} more" if len(loops) > _SHOWN else ""
    return f"a loop whose steps are a generated number? There is {'; '.join(loops[:_SHOWN])}{more}"


def _behind(ops: Iterable[Any]) -> set[Any]:
    """The operations on which these depend, including themselves."""
    found, stack = set[Any](), list(ops)
    while stack:
        op = stack.pop()
        if op not in found:
            found.add(op)
            stack += [tensor.op for tensor in op.inputs]
    return found
