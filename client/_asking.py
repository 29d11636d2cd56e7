"""Builds and sends one request, and tries other forms if the server refuses it."""

import logging
import re
import time
from collections.abc import Generator
from dataclasses import replace
from typing import TypeVar

from colcast.client._errors import InputError, SchemaError, ServerError
from colcast.client._settings import ClientSettings
from colcast.client.columns._inputs import Rows
from colcast.client.columns._inputs_examples import Examples
from colcast.client.columns._schema import USER, ModelSchema
from colcast.client.request._metadata import decode_metadata_response, encode_metadata_request
from colcast.client.request._request import (
    Built,
    RequestOptions,
    build_request,
)
from colcast.client.transport._transport import GET_MODEL_METADATA, PREDICT, Call, Reply

Result = TypeVar("Result")
Steps = Generator[Call, Reply, Result]

# Status codes with which a server refuses a request made for another version of the model.
_STALE_CODES = ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
# Status codes of a server that does not support this kind of request.
REFUSED_CODES = (*_STALE_CODES, "UNIMPLEMENTED", "OUT_OF_RANGE")
# If data does not fit the schema, the client asks for a newer one, but at most this often.
_RECHECK_SECONDS = 1.0
_KEPT_VERSIONS = 4

# The errors when a server joins late requests (--enable_batching): the model refuses several users
# at once, or the server refuses to join inputs of 1 row with inputs of N rows.
_JOINED = re.compile(
    r"Shape of tensor \S*columnar_late/inputs/\S+ \[(?!1[,\]])\d+[,\]]\S*"
    r" is not compatible with expected shape \[1[,\]]"
    r"|must have equal 0th-dimension size"
)
_JOINS = (
    "columnar_late is refused: the server joins the rows of requests (--enable_batching), or pads"
    " even a single row (allowed_batch_sizes without 1). Use target='columnar', or 'auto', which"
    " switches to columnar for 10 minutes"
)

_log = logging.getLogger("colcast.client")
# How long after a refusal to ask again: perhaps only that request was unusual, or the server's
# settings have changed.
_ASK_AGAIN_SECONDS = 600.0
# How long other calls wait for the result of the call that asks again, which may never come.
_LEARNING_SECONDS = 10.0


class Permission:
    """Whether to ask a server for a feature that it may have refused before.

    For 10 minutes after a refusal, no call asks. Then one call tries again, and its result decides.
    If there is no result within 10 seconds, another call tries.

    Attributes:
        was_granted: whether the most recent result was a grant.
    """

    was_granted = False

    def __init__(self) -> None:
        self._refused_until = 0.0
        self._logged = False

    def ask(self) -> bool:
        """Whether a call that begins now may ask for the feature."""
        if not self._refused_until:
            return True
        now = time.monotonic()
        if now < self._refused_until:
            return False
        self._refused_until = now + _LEARNING_SECONDS
        return True

    def refused(self) -> None:
        """Records that the server refused this kind of request."""
        self._refused_until = time.monotonic() + _ASK_AGAIN_SECONDS
        self.was_granted = False

    def granted(self) -> None:
        """Records that the server answered."""
        self._refused_until = 0.0
        self.was_granted = True

    def log_once(self, log: logging.Logger, message: str) -> None:
        """Logs the message the first time only."""
        if not self._logged:
            self._logged = True
            log.warning(message)


class Asking:
    """The steps of one request, and which features the server is known to support."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._known: dict[int | None, ModelSchema] = {}
        self._current: ModelSchema | None = None
        self._fetched_at = 0.0
        self._answering: int | None = None  # the version that answered last
        self._expansion = Permission()  # to let the server repeat rows
        self._late = Permission()
        self._indices = Permission()  # to send a domain's distinct rows with an index
        self._several = Permission()  # to send several users in one request
        self._prefetch = Permission()

    def schema(self) -> Steps[ModelSchema]:
        """The schema of the version that answers, requested from the server only if unknown."""
        current = self._current
        if current is None:
            return (yield from self._fetch(self._settings.version))
        if self._answering in (None, current.version):
            return current
        if self._answering in self._known:
            self._current = self._known[self._answering]
            return self._current
        try:
            return (yield from self._fetch(self._answering))
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
            if not (yield from self._changed_since(schema)):
                raise
        return build_request((yield from self.schema()), inputs, options)

    def _reply(self, inputs: Rows | Examples, options: RequestOptions) -> Steps[Reply]:
        """Builds and sends one request, and a second one if the server refuses the first."""
        schema = yield from self.schema()
        built = yield from self._build(inputs, options)
        try:
            reply = yield predict(built)
        except ServerError as error:
            if error.code not in _STALE_CODES:
                raise
            return (yield from self._another_way(inputs, options, schema, built, error))
        self._learn_indices(built)
        if built.needs_expansion:
            self._expansion.granted()
        if built.target == "late":
            self._late.granted()
        return reply

    def _another_way(
        self,
        inputs: Rows | Examples,
        options: RequestOptions,
        schema: ModelSchema,
        built: Built,
        error: ServerError,
    ) -> Steps[Reply]:
        """The reply to another form of the request; raises `error` if there is no other form."""
        if (yield from self._changed_since(schema)):
            return (yield predict((yield from self._build(inputs, options))))
        if built.distinct:
            reply = yield from self._reply(inputs, replace(options, indexed=False))
            self._indices.refused()
            return reply
        joins = built.target == "late" and _JOINED.search(error.details)
        if joins:
            self._late.log_once(_log, _JOINS)
        if options.target != "auto":
            raise error
        if joins:
            return (yield from self._instead_of_late(inputs, options, error))
        if self._may_be_unexpanded(built, error):
            return (yield from self._in_full(inputs, options, error))
        raise error

    def _instead_of_late(
        self, inputs: Rows | Examples, options: RequestOptions, error: ServerError
    ) -> Steps[Reply]:
        """The reply to a request in another form, after a server has refused the late signature."""
        options = replace(options, late=False)
        built = yield from self._build(inputs, options)
        if built.target == "late":
            raise error
        try:
            reply = yield from self._repeated(inputs, options, built, error)
        except ServerError as again:
            if again is not error:  # only the late form was refused
                self._late.refused()
            raise
        self._late.refused()
        return reply

    def _repeated(
        self, inputs: Rows | Examples, options: RequestOptions, built: Built, error: ServerError
    ) -> Steps[Reply]:
        """Sends the request, then one with all rows in full; raises `error` if both are refused."""
        try:
            return (yield predict(built))
        except ServerError as again:
            if again.code not in REFUSED_CODES:
                raise
            if not self._may_be_unexpanded(built, again):
                raise error from None
        return (yield from self._in_full(inputs, options, error))

    def _may_be_unexpanded(self, built: Built, error: ServerError) -> bool:
        """Whether the error may come from a server that does not repeat rows."""
        never_seen = built.needs_expansion and not self._expansion.was_granted
        return never_seen and error.code == "INVALID_ARGUMENT"

    def _in_full(
        self, inputs: Rows | Examples, options: RequestOptions, error: ServerError
    ) -> Steps[Reply]:
        """The reply to a request with all rows in full; raises `error` if that is refused, too."""
        built = yield from self._build(inputs, replace(options, server_expands=False))
        try:
            reply = yield predict(built)
        except ServerError as again:
            if again.code not in REFUSED_CODES:
                raise
            raise error from None
        self._expansion.refused()
        return reply

    def _learn_indices(self, built: Built) -> None:
        """Records that the server supports indices, if the answered request had any."""
        if built.distinct.keys() - {USER}:
            self._indices.granted()

    def _changed_since(self, schema: ModelSchema) -> Steps[bool]:
        try:
            fresh = yield from self._fetch(self._settings.version)
        except ServerError:
            return False
        return fresh.version != schema.version

    def _fetch(self, version: int | None) -> Steps[ModelSchema]:
        label = self._settings.version_label if version is None else None
        request = encode_metadata_request(self._settings.model, version, label)
        reply = yield Call(GET_MODEL_METADATA, request)
        schema = decode_metadata_response(reply.response)
        self._known[schema.version] = self._current = schema
        for old in list(self._known)[:-_KEPT_VERSIONS]:
            del self._known[old]
        self._fetched_at = time.monotonic()
        self._answering = None
        return schema


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
