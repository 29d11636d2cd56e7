"""Recognizes tensors with the same values and size in every run."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.graph._nodes import NodeDef
from colcast.export.rows._facts import Axes, Fact, Kind, fixed, has_rows, labels, longest


def is_of_no_run(fact: Fact) -> bool:
    """Whether a tensor has the same values and size in every run."""
    if fact.kind is Kind.SIZES and fact.sizes is not None:
        return not (fact.lengths or has_rows(fact.sizes) or longest(fact.sizes))
    return (
        fact.kind is Kind.FIXED
        and fact.plain
        and fact.axes is not None
        and not fact.lengths
        and not has_rows(fact.axes)
        and not longest(fact.axes)
    )


def known_sizes(fact: Fact) -> Any:
    """Sizes as numbers if they are the same in every run; else None."""
    entries = fact.sizes or ()
    if any(each is None or labels([each]) for each in entries):
        return None
    numbers = np.array([each[0] if each else 1 for each in entries if each is not None], np.int64)
    return numbers if fact.axes else numbers.reshape([])


def free_fact(node: NodeDef, number: int, shape: Sequence[int | None] | None) -> Fact:
    """The fact of an output that is the same in every run; `shape` is declared in the graph."""
    value = None
    if node.op == "Const":
        tensor = node.attr["value"].tensor
        if int(np.prod([dim.size for dim in tensor.tensor_shape.dim], dtype=np.int64)) <= 64:
            value = tf.make_ndarray(tensor)
    return fixed(None if shape is None else _axes(shape, f"{node.name}/{number}"), value)


def _axes(shape: Sequence[int | None], name: str) -> Axes:
    return tuple(
        (f"size:{name}/{number}",) if size is None else (size,) if size != 1 else ()
        for number, size in enumerate(shape)
    )
