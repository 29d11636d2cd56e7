"""A small SavedModel with the signatures of a served ranking model, written with TensorFlow.

Its features are `SPECS` in tests/client/conftest.py. It computes the same scores from
tf.Examples, from columns, and from columns with the user as one row. `brief` and `slim` compute
another score from some item features, `brief` from tf.Examples and `slim` from columns.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.zoo.saving import independent, with_record

from .saving import save_graph

v1 = tf.compat.v1
_EXAMPLE = {
    "age": tf.io.FixedLenFeature([], tf.int64),
    "city": tf.io.FixedLenFeature([], tf.string),
    "history": tf.io.RaggedFeature(tf.int64),
    "movie": tf.io.FixedLenFeature([], tf.int64),
    "year": tf.io.FixedLenFeature([], tf.float32, 1990.0),
    "genres": tf.io.RaggedFeature(tf.string),
    "vector": tf.io.FixedLenFeature([3], tf.float32),
}


def _hashed(strings: Any) -> Any:
    return tf.cast(tf.strings.to_hash_bucket_fast(strings, 1000), tf.float32)


def _meant(values: Any, lengths: Any) -> Any:
    """Sums each row's list without its padding."""
    mask = tf.sequence_mask(lengths, tf.shape(values)[1], tf.float32)
    return tf.reduce_sum(values * mask, 1)


def _scores(columns: dict[str, Any]) -> dict[str, Any]:
    history = tf.cast(columns["history"], tf.float32)
    user = tf.cast(columns["age"], tf.float32) + _hashed(columns["city"])
    user += _meant(history, columns["history/length"])
    item = tf.cast(columns["movie"], tf.float32) * 0.5 + columns["year"]
    item += _meant(_hashed(columns["genres"]), columns["genres/length"])
    item += tf.reduce_sum(columns["vector"], 1)
    return {"scores": user / item, "items": item}


def _from_examples(examples: Any) -> dict[str, Any]:
    parsed = tf.io.parse_example(examples, _EXAMPLE)
    for name in ("history", "genres"):
        parsed[f"{name}/length"] = parsed[name].row_lengths()
        parsed[name] = parsed[name].to_tensor()
    return _scores(parsed)


_COLUMNS = {
    "age": (tf.int64, []),
    "city": (tf.string, []),
    "history": (tf.int64, [None]),
    "history/length": (tf.int64, []),
    "movie": (tf.int64, []),
    "year": (tf.float32, []),
    "genres": (tf.string, [None]),
    "genres/length": (tf.int64, []),
    "vector": (tf.float32, [3]),
}
COLUMNS = tuple(_COLUMNS)
_USER = ("age", "city", "history", "history/length")


def _of_columns(name: str, score: Any, columns: Iterable[str], users: int | None = None) -> Any:
    """A signature of columns; like the exporter's, it has the default of `year`."""
    placeholders = {}
    for column in columns:
        dtype, inner = _COLUMNS[column]
        shape = [users if column in _USER else None, *inner]
        placeholders[column] = v1.placeholder(dtype, shape, f"{name}/{column}")
    signature = v1.saved_model.predict_signature_def(placeholders, score(placeholders))
    if name != "slim":
        signature.defaults["year"].CopyFrom(tf.make_tensor_proto([1990.0], tf.float32))
    return signature


def _brief(parsed: dict[str, Any]) -> dict[str, Any]:
    return {"brief": parsed["year"] / tf.reduce_sum(parsed["vector"], 1)}


def save(path: Path) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        examples = {"examples": v1.placeholder(tf.string, [None], "examples")}
        few = {name: _EXAMPLE[name] for name in ("year", "vector")}
        brief = _brief(tf.io.parse_example(examples["examples"], few))
        parsed = _from_examples(examples["examples"])
        signatures = {
            "serving_default": v1.saved_model.predict_signature_def(examples, parsed),
            "brief": v1.saved_model.predict_signature_def(examples, brief),
            "slim": _of_columns("slim", _brief, few),
            "columnar": _of_columns("columnar", _scores, COLUMNS),
            "columnar_late": _of_columns("columnar_late", _scores, COLUMNS, users=1),
        }
        save_graph(path, session, signatures)
    record = {
        "source_input": None,
        "late": {"signature": "columnar_late"},
        "independence": independent("columnar", "columnar_late"),
    }
    with_record(path, {"columnar": record})
