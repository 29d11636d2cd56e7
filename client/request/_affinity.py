"""The header that routes a user's requests to the server that caches the user's state.

Its value is a keyed hash: of the user's columns, whose bytes are also the key of cached states, or
of a key that the caller passes. The hash reveals nothing about them.
"""

from hashlib import blake2b
from numbers import Integral
from typing import Any

from colcast.client._errors import InputError
from colcast.client._settings import ClientSettings
from colcast.client.columns._batch import Batch
from colcast.client.columns._schema import USER, ModelSchema

AffinityKey = str | bytes | int


def hash_of_key(key: Any, settings: ClientSettings) -> str:
    """Hashes a caller's key to 16 hex digits; an integer and its decimal text are the same key."""
    if isinstance(key, Integral):
        key = str(int(key))
    if isinstance(key, str):
        key = key.encode()
    if not isinstance(key, bytes):
        raise InputError(f"affinity_key must be str, bytes or int, got {type(key).__name__}")
    return _hash(b"key", key, settings)


def hash_of_user(schema: ModelSchema, batch: Batch, settings: ClientSettings) -> str:
    """Hashes the user's columns to 16 hex digits, the same for every target.

    Empty if the setting is off, if the request has several users, or if the model has no
    `columnar_late`: then the user's features are unknown, and no user states are cached.
    """
    if settings.affinity == "off" or USER in batch.indices:
        return ""
    columns, parts = batch.columns, list[bytes]()
    for name, encoded in schema.user_features.items():
        if name not in columns:
            continue
        values = columns[name].values
        if len(values) > 1:
            values = values[:1]
        text = values.dtype.kind == "O"
        parts += encoded, b"\0".join(values.ravel().tolist()) if text else values.tobytes()
    return _hash(b"columns", b"".join(parts), settings) if parts else ""


def _hash(kind: bytes, content: bytes, settings: ClientSettings) -> str:
    secret = settings.affinity_secret.encode()
    return blake2b(content, digest_size=8, key=secret, person=kind).hexdigest()
