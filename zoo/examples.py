"""Serializes rows of plain values as tf.Examples, as trainers and existing clients do."""

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf


def serialize(row: Mapping[str, Any]) -> bytes:
    """One tf.Example; a value is an int, a float, a str, bytes, or a list of one of these types.

    Raises:
      TypeError: a value has another type; the message names its feature.
    """
    return bytes(
        tf.train.Example(
            features=tf.train.Features(
                feature={name: _feature(name, value) for name, value in row.items()}
            )
        ).SerializeToString(deterministic=True)
    )


def serialize_request(user: Mapping[str, Any], items: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """One tf.Example per candidate, each repeating every user feature."""
    return [serialize({**user, **item}) for item in items]


def _feature(name: str, value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    first = values[0] if values else 0
    if isinstance(first, (str, bytes)):
        encoded = [one.encode() if isinstance(one, str) else one for one in values]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))
    if isinstance(first, float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    if isinstance(first, int) and not isinstance(first, bool):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    raise TypeError(f"feature {name!r}: a tf.Example holds no {type(first).__name__}")
