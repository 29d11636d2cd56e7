"""How much of a model's time a late signature would spend once per request."""

from collections.abc import Collection
from typing import Any

import tensorflow as tf
from colcast.export.cut._timing import op_times
from colcast.export.graph._colours import PAIR, USER, colour
from colcast.export.graph._flat_graph import FlatGraph
from colcast.export.graph._requests import Columns
from colcast.export.graph._signature import read_signature


def user_share(
    meta_graph: Any,
    session: tf.compat.v1.Session,
    columnar_signature: str,
    user_features: Collection[str],
    columns: Columns,
) -> float:
    """The share of a columnar signature's op time that goes into ops of the user's features alone.

    Products that a late signature splits save more than that, tensors that it cannot repeat less.

    Args:
        meta_graph: MetaGraphDef with the signature.
        session: an initialised session on the same graph.
        columnar_signature: its name.
        user_features: features that are the same on every row.
        columns: a request, every input with its rows.
    """
    signature = read_signature(meta_graph, columnar_signature, user_features)
    graph = FlatGraph(meta_graph, signature.outputs.values())
    sides = {USER: signature.once.values(), PAIR: signature.items.values()}
    colours = colour(graph, sides, waiting=USER)
    (times,) = op_times(session, [(signature, columns)])
    users = sum(time for op, time in times.items() if colours.of.get(op) == USER)
    return users / (sum(times.values()) or 1.0)
