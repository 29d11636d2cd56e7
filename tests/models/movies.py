"""A small SavedModel with the signatures of a served ranking model, written with TensorFlow.

Its features are `SPECS` in tests/client/conftest.py. It computes the same scores from
tf.Examples, from columns, and from columns with the user as one row. `brief` and `slim` compute
another score from some item features, `brief` from tf.Examples and `slim` from columns.
"""

from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.zoo.saving import independent, with_record
from tensorflow.core.protobuf import saved_model_pb2

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


def _specs(late: bool) -> dict[str, Any]:
    user, item = 1 if late else None, None
    return {
        "age": tf.TensorSpec([user], tf.int64, "age"),
        "city": tf.TensorSpec([user], tf.string, "city"),
        "history": tf.TensorSpec([user, None], tf.int64, "history"),
        "history/length": tf.TensorSpec([user], tf.int64, "history/length"),
        "movie": tf.TensorSpec([item], tf.int64, "movie"),
        "year": tf.TensorSpec([item], tf.float32, "year"),
        "genres": tf.TensorSpec([item, None], tf.string, "genres"),
        "genres/length": tf.TensorSpec([item], tf.int64, "genres/length"),
        "vector": tf.TensorSpec([item, 3], tf.float32, "vector"),
    }


COLUMNS = tuple(_specs(late=False))


def _columnar(late: bool) -> Any:
    specs = _specs(late)
    names = list(specs)
    flat = [tf.TensorSpec(s.shape, s.dtype, n.replace("/", "_")) for n, s in specs.items()]
    function = tf.function(lambda *values: _scores(dict(zip(names, values, strict=True))))
    return function.get_concrete_function(*flat)


def _brief(parsed: dict[str, Any]) -> dict[str, Any]:
    return {"brief": parsed["year"] / tf.reduce_sum(parsed["vector"], 1)}


def _brief_from_examples(examples: Any) -> dict[str, Any]:
    return _brief(tf.io.parse_example(examples, {n: _EXAMPLE[n] for n in ("year", "vector")}))


def _slim() -> Any:
    specs = _specs(late=False)
    function = tf.function(lambda year, vector: _brief({"year": year, "vector": vector}))
    return function.get_concrete_function(specs["year"], specs["vector"])


def save(path: Path) -> None:
    module = tf.Module()
    examples = tf.TensorSpec([None], tf.string, "examples")
    signatures = {"serving_default": tf.function(_from_examples).get_concrete_function(examples)}
    signatures["brief"] = tf.function(_brief_from_examples).get_concrete_function(examples)
    signatures["slim"] = _slim()
    signatures["columnar"] = _columnar(late=False)
    signatures["columnar_late"] = _columnar(late=True)
    tf.saved_model.save(module, str(path), signatures)
    _finish(path / "saved_model.pb")
    record = {
        "source_input": None,
        "late": {"signature": "columnar_late"},
        "independence": independent("columnar", "columnar_late"),
    }
    with_record(path, {"columnar": record})


def _finish(file: Path) -> None:
    """Renames inputs to names with a slash, and sets the default of `year`, like the exporter."""
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    for name, signature in model.meta_graphs[0].signature_def.items():
        if not name.startswith("columnar"):
            continue
        for key in ("history", "genres"):
            signature.inputs[f"{key}/length"].CopyFrom(signature.inputs[f"{key}_length"])
            del signature.inputs[f"{key}_length"]
        signature.defaults["year"].CopyFrom(tf.make_tensor_proto([1990.0], tf.float32))
    file.write_bytes(model.SerializeToString())
