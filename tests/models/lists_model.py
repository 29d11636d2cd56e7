"""A handwritten ranker, written as the exporter does, whose scores depend on the longest lists.

score = 100 * mean(history) + 10 * mean(genres) + mean(clicks), where a mean is the sum divided by 1
+ the longest list of the run.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.zoo.saving import independent, with_record

from .saving import save_graph

v1 = tf.compat.v1

DOMAINS = {"user": "history", "item": "genres", "candidate": "clicks"}
WEIGHTS = {"history": 100.0, "genres": 10.0, "clicks": 1.0}
_OWN_LENGTH = {
    "columnar": ["clicks", "genres", "history"],
    "columnar_late": ["clicks", "genres"],
    "columnar_user": ["history"],
    "columnar_item": ["genres"],
    "columnar_pair": ["clicks"],
}

Lists = Sequence[Sequence[float]]


def save(directory: Path) -> None:
    """Writes the model with its record."""
    with tf.Graph().as_default(), v1.Session() as session:
        signatures = {
            "columnar": _whole("columnar", None),
            "columnar_late": _whole("columnar_late", 1),
            "columnar_user": _stage("user"),
            "columnar_item": _stage("item"),
            "columnar_pair": _last_stage(),
        }
        save_graph(directory, session, signatures)
    record: dict[str, Any] = {
        "source_input": None,
        "late": {"signature": "columnar_late"},
        "parts": {"written": True, "users_per_run": "many"},
        "features": {
            name: {"kind": "var_len", "dtype": "float32", "side": domain}
            for domain, name in DOMAINS.items()
        },
        "independence": independent(*signatures),
    }
    for name, own_length in _OWN_LENGTH.items():
        record["independence"][name]["own_length"] = own_length
    with_record(directory, {"columnar": record})


def columns(name: str, lists: Lists, wider: int = 0) -> dict[str, np.ndarray]:
    """A list's two columns, padded with NaN to `wider` more values than the longest has."""
    lengths = np.array([len(one) for one in lists], np.int64)
    padded = np.full((len(lists), lengths.max(initial=0) + wider), np.nan, np.float32)
    for row, one in zip(padded, lists, strict=True):
        row[: len(one)] = one
    return {name: padded, f"{name}/length": lengths}


def scores(history: Lists, genres: Lists, clicks: Lists) -> np.ndarray:
    """The scores of one request: a user's history, and lists of its candidates."""
    found = np.zeros(len(clicks))
    for name, lists in (("history", history), ("genres", genres), ("clicks", clicks)):
        longest = max(len(one) for one in lists)
        found += [WEIGHTS[name] * sum(one) / (1 + longest) for one in lists]
    return found


def _mean(prefix: str, name: str, rows: int | None = None) -> tuple[dict[str, Any], Any]:
    values = v1.placeholder(tf.float32, [rows, None], f"{prefix}/{name}")
    length = v1.placeholder(tf.int64, [rows], f"{prefix}/{name}_length")
    there = tf.sequence_mask(length, tf.shape(values)[1])
    longest = 1.0 + tf.cast(tf.reduce_max(length), tf.float32)
    mean = tf.reduce_sum(tf.where(there, values, tf.zeros_like(values)), 1) / longest
    return {name: values, f"{name}/length": length}, WEIGHTS[name] * mean


def _whole(prefix: str, users: int | None) -> Any:
    user, of_user = _mean(prefix, "history", users)
    item, of_item = _mean(prefix, "genres")
    context, of_clicks = _mean(prefix, "clicks")
    outputs = {"score": of_user + of_item + of_clicks}
    return v1.saved_model.predict_signature_def(user | item | context, outputs)


def _stage(domain: str) -> Any:
    inputs, mean = _mean(f"columnar_{domain}", DOMAINS[domain])
    return v1.saved_model.predict_signature_def(inputs, {f"{domain}_state/0": mean})


def _last_stage() -> Any:
    context, of_clicks = _mean("columnar_pair", "clicks")
    inputs = {
        "row_to_user": v1.placeholder(tf.int64, [None], "columnar_pair/row_to_user"),
        "user_state/0": v1.placeholder(tf.float32, [None], "columnar_pair/user_0"),
        "user_state/row": v1.placeholder(tf.int64, [None], "columnar_pair/user_row"),
        "item_state/0": v1.placeholder(tf.float32, [None], "columnar_pair/item_0"),
    }
    of_user = tf.gather(inputs["user_state/0"], inputs["row_to_user"])
    outputs = {"score": of_user + inputs["item_state/0"] + of_clicks}
    return v1.saved_model.predict_signature_def(context | inputs, outputs)
