"""Builds and sends one request; asks for the signatures again if the server refuses it."""

import time
from collections.abc import Generator
from dataclasses import replace
from typing import TypeVar

from colcast.client._errors import InputError, SchemaError, ServerError
from colcast.client._settings import ClientSettings
from colcast.client.columns._inputs import Rows
from colcast.client.columns._inputs_examples import Examples
from colcast.client.columns._schema import EXPANDS, ModelSchema
from colcast.client.request._metadata import decode_metadata_response, encode_metadata_request
from colcast.client.request._request import Built, RequestOptions, build_request
from colcast.client.transport._transport import GET_MODEL_METADATA, PREDICT, Call, Reply

Result = TypeVar("Result")
Steps = Generator[Call, Reply, Result]

# Status codes with which a server refuses a request made for another version of the model, or for
# a server that can do more.
_STALE_CODES = ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
# If data does not fit the schema, the client asks for a newer one, but at most this often.
_RECHECK_SECONDS = 1.0
# How long a server counts as stock TensorFlow Serving before the client asks again: the replicas
# may have been upgraded.
_STOCK_SECONDS = 600.0
_KEPT_VERSIONS = 4
# The trailer of GetModelMetadata in which colcast's server lists what it can do.
_CAN = "x-colcast-can"


class Asking:
    """The steps of one request, and the signatures of the served versions."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._known: dict[int | None, ModelSchema] = {}
        self._current: ModelSchema | None = None
        self._fetched_at = 0.0
        self._answering: int | None = None  # the version that answered last

    def schema(self) -> Steps[ModelSchema]:
        """The schema of the version that answers, requested from the server only if unknown."""
        current = self._current
        if current is None:
            return (yield from self._fetch(self._settings.version))
        version = self._settings.version
        if self._answering not in (None, current.version):
            if self._answering in self._known:
                self._current = self._known[self._answering]
                return self._current
            version = self._answering
        elif current.can or time.monotonic() - self._fetched_at < _STOCK_SECONDS:
            return current
        self._fetched_at = time.monotonic()  # other calls do not ask meanwhile
        try:
            return (yield from self._fetch(version))
        except ServerError:  # another server answered, or has unloaded the version
            return current

    def _build(self, inputs: Rows | Examples, options: RequestOptions) -> Steps[Built]:
        """Builds one request, from a newer schema if the model has changed."""
        schema = yield from self.schema()
        try:
            return build_request(schema, inputs, options)
        except (InputError, SchemaError):
            if time.monotonic() - self._fetched_at < _RECHECK_SECONDS:
                raise
            if not (yield from self._differs(schema)):
                raise
        return build_request((yield from self.schema()), inputs, options)

    def _reply(self, inputs: Rows | Examples, options: RequestOptions) -> Steps[Reply]:
        """Builds and sends one request; again if it was made for another version or server."""
        schema = yield from self.schema()
        built = yield from self._build(inputs, options)
        try:
            return (yield predict(built))
        except ServerError as error:
            if not (yield from self._was_stale(schema, error)):
                raise
        return (yield predict((yield from self._build(inputs, options))))

    def _was_stale(self, schema: ModelSchema, error: ServerError) -> Steps[bool]:
        """Whether the server that refused a request now describes itself otherwise than `schema`.

        Only what the server declares decides, never the text of its error.
        """
        if error.code not in _STALE_CODES:
            return False
        return (yield from self._differs(schema, error.server))

    def _differs(self, schema: ModelSchema, server: str = "") -> Steps[bool]:
        try:
            fresh = yield from self._fetch(self._settings.version, server)
        except ServerError:
            return False
        return (fresh.version, fresh.can) != (schema.version, schema.can)

    def _fetch(self, version: int | None, server: str = "") -> Steps[ModelSchema]:
        """Asks for the signatures, if possible the server at this address."""
        label = self._settings.version_label if version is None else None
        request = encode_metadata_request(self._settings.model, version, label)
        reply = yield Call(GET_MODEL_METADATA, request, server=server)
        schema = replace(decode_metadata_response(reply.response), can=self._can(reply))
        self._known[schema.version] = self._current = schema
        for old in list(self._known)[:-_KEPT_VERSIONS]:
            del self._known[old]
        self._fetched_at = time.monotonic()
        self._answering = None
        return schema

    def _can(self, reply: Reply) -> frozenset[str]:
        """What the server announced that it can do; else what the `fork` setting implies."""
        said = reply.metadata.get(_CAN, "")
        if isinstance(said, str) and said:
            return frozenset(word.strip() for word in said.split(","))
        return frozenset({EXPANDS} if self._settings.fork else ())


def predict(built: Built) -> Call:
    """The Predict call that sends a request."""
    facts = {
        "target": built.target,
        "signature": built.signature,
        "candidates": built.rows,
        "columns_not_sent": built.unused,
        "request_bytes": len(built.message),
    }
    facts |= {f"rows_of.{domain}": rows for domain, rows in built.distinct.items()}
    return Call(PREDICT, built.message, facts, built.affinity)
