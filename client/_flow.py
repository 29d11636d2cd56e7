"""What a call to a ranking model consists of, without the waiting.

The steps (get the schema if there is none, build the request, send it, notice a new model
version) are one generator that yields calls and is given their replies. The blocking and the
asyncio client differ only in how they wait.
"""

import time
from collections.abc import Callable, Generator
from dataclasses import replace

from colcast.client._decode import decode_predict_response
from colcast.client._errors import InputError, SchemaError, ServerError
from colcast.client._outputs import Ranking
from colcast.client._request import Built, Examples, RequestOptions, Rows, build_request
from colcast.client._schema import ModelSchema, decode_metadata_response, encode_metadata_request
from colcast.client._transport import GET_MODEL_METADATA, PREDICT, Call, Reply

BuildSteps = Generator[Call, Reply, Built]
Steps = Generator[Call, Reply, Ranking]
SchemaSteps = Generator[Call, Reply, ModelSchema]

# What a server says to a request made for another version of the model.
_STALE_CODES = ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
# Data that does not fit may fit a version we have not heard of; ask at most this often.
_RECHECK_SECONDS = 1.0
_KEPT_VERSIONS = 4


class Flow:
    """The steps of one client's calls, and what they have learnt about the server."""

    def __init__(self, model: str, version: int | None, version_label: str | None) -> None:
        self._model = model
        self._version = version
        self._label = version_label
        self._known: dict[int | None, ModelSchema] = {}
        self._current: ModelSchema | None = None
        self._fetched_at = 0.0
        self._answering: int | None = None  # the version that answered last
        self._expands: bool | None = None  # whether the server repeats rows; None: not seen yet

    def schema(self) -> SchemaSteps:
        """The schema of the version that answers; asks the server only if it is not known."""
        current = self._current
        if current is None:
            return (yield from self._fetch(self._version))
        if self._answering in (None, current.version):
            return current
        if self._answering in self._known:
            self._current = self._known[self._answering]
            return self._current
        try:
            return (yield from self._fetch(self._answering))
        except ServerError:  # another server answers, or the version went away again
            return current

    def build(self, inputs: Rows | Examples, options: RequestOptions) -> BuildSteps:
        """Builds one request; once more if the model changed since its schema was read."""
        schema = yield from self.schema()
        options = replace(options, server_expands=self._expands is not False)
        try:
            return build_request(schema, inputs, options)
        except (InputError, SchemaError):
            if time.monotonic() - self._fetched_at < _RECHECK_SECONDS:
                raise
            if not (yield from self._changed_since(schema)):
                raise
        return build_request((yield from self.schema()), inputs, options)

    def rank(
        self,
        inputs: Rows | Examples,
        options: RequestOptions,
        finish: Callable[[Reply], Ranking],
    ) -> Steps:
        """Builds, sends and decodes one request.

        A second one is sent if the model changed in between, or if the server was believed to
        repeat rows and turns out not to.
        """
        schema = yield from self.schema()
        built = yield from self.build(inputs, options)
        try:
            reply = yield _predict(built)
        except ServerError as error:
            if error.code not in _STALE_CODES:
                raise
            if (yield from self._changed_since(schema)):
                built = yield from self.build(inputs, options)
                reply = yield _predict(built)
            elif options.target == "auto" and built.needs_expansion and not self._expands:
                reply = yield from self._without_expansion(inputs, options, error)
            else:
                raise
        else:
            if built.needs_expansion:
                self._expands = True
        return self._answered(finish(reply))

    def send(self, request: bytes, finish: Callable[[Reply], Ranking]) -> Steps:
        """Sends a request built before."""
        reply = yield Call(PREDICT, request)
        return self._answered(finish(reply))

    def _without_expansion(
        self, inputs: Rows | Examples, options: RequestOptions, error: ServerError
    ) -> Generator[Call, Reply, Reply]:
        """The same for a server that does not expand; if that fails too, the first error."""
        schema = yield from self.schema()
        stock = build_request(schema, inputs, replace(options, server_expands=False))
        try:
            reply = yield _predict(stock)
        except ServerError:
            raise error from None
        self._expands = False
        return reply

    def _changed_since(self, schema: ModelSchema) -> Generator[Call, Reply, bool]:
        try:
            fresh = yield from self._fetch(self._version)
        except ServerError:
            return False
        return fresh.version != schema.version

    def _answered(self, ranking: Ranking) -> Ranking:
        if ranking.model_version is not None:
            self._answering = ranking.model_version
        return ranking

    def _fetch(self, version: int | None) -> SchemaSteps:
        label = self._label if version is None else None
        reply = yield Call(GET_MODEL_METADATA, encode_metadata_request(self._model, version, label))
        schema = decode_metadata_response(reply.response)
        self._known[schema.version] = self._current = schema
        for old in list(self._known)[:-_KEPT_VERSIONS]:
            del self._known[old]
        self._fetched_at = time.monotonic()
        self._answering = None
        return schema


def _predict(built: Built) -> Call:
    facts = {
        "target": built.target,
        "signature": built.signature,
        "candidates": built.rows,
        "columns_not_sent": built.unused,
        "request_bytes": len(built.message),
    }
    return Call(PREDICT, built.message, facts)


def ranking_of(reply: Reply, score_output: str | None) -> Ranking:
    """Decodes a Predict reply."""
    decoded = decode_predict_response(reply.response)
    return Ranking(decoded.outputs, decoded.model.version, reply.metadata, score_output)
