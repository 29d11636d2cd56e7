"""A handwritten model whose rows depend on each other, each signature in a different way."""

from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.zoo.saving import with_record

from .saving import save_graph

v1 = tf.compat.v1

_DEPENDENT = {"rows": False, "why_not": "Softmax mixes rows", "own_length": []}
_OWN_LENGTH = {"rows": True, "why_not": "", "own_length": ["history"]}


def save(directory: Path) -> None:
    """Writes the model.

    `columnar` and `columnar_late` compute a softmax over the candidates and a sum, and are recorded
    as dependent. `listed` depends on the greatest length of `history`, and is recorded so. Three
    signatures have no record: `wide` depends on the width of `seen`, although an input that is not
    its length has the length's name; `total` has an output without rows; `best` has an output of
    one row.
    """
    with tf.Graph().as_default(), v1.Session() as session:
        signatures = {
            "columnar": _share("columnar", None),
            "columnar_late": _share("columnar_late", 1),
            "listed": _listed(),
            "wide": _wide(),
            "total": _reduced("total", keepdims=False),
            "best": _reduced("best", keepdims=True),
        }
        save_graph(directory, session, signatures)
    columnar = {
        "source_input": None,
        "late": {"signature": "columnar_late"},
        "independence": dict.fromkeys(("columnar", "columnar_late"), _DEPENDENT),
    }
    listed = {
        "source_input": None,
        "features": {"history": {"kind": "var_len"}},
        "independence": {"listed": _OWN_LENGTH},
    }
    with_record(directory, {"columnar": columnar, "listed": listed})


def _share(name: str, users: int | None) -> Any:
    user = v1.placeholder(tf.float32, [users], f"{name}/user")
    item = v1.placeholder(tf.float32, [None], f"{name}/item")
    outputs = {"share": tf.nn.softmax(user * item, axis=0), "total": tf.reduce_sum(item)}
    return v1.saved_model.predict_signature_def({"user": user, "item": item}, outputs)


def _listed() -> Any:
    history = v1.placeholder(tf.float32, [None, None], "listed/history")
    length = v1.placeholder(tf.int64, [None], "listed/length")
    there = tf.sequence_mask(length, tf.shape(history)[1], tf.float32)
    longest = tf.cast(tf.reduce_max(length), tf.float32)
    mean = tf.reduce_sum(history * there, 1) / longest
    return v1.saved_model.predict_signature_def(
        {"history": history, "history/length": length}, {"mean": mean}
    )


def _wide() -> Any:
    seen = v1.placeholder(tf.float32, [None, None], "wide/seen")
    length = v1.placeholder(tf.int64, [None], "wide/length")
    mean = tf.reduce_mean(seen, 1) + tf.cast(length, tf.float32)
    return v1.saved_model.predict_signature_def(
        {"seen": seen, "seen/length": length}, {"mean": mean}
    )


def _reduced(name: str, keepdims: bool) -> Any:
    item = v1.placeholder(tf.float32, [None], f"{name}/item")
    reduced = tf.reduce_sum(item, keepdims=keepdims)
    outputs = {"score": tf.identity(item), name: reduced}
    return v1.saved_model.predict_signature_def({"item": item}, outputs)
