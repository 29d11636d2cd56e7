"""What a call to a ranking model consists of, without the waiting.

The steps (get the schema if there is none, build the request, send it, notice a new model
version) are one generator that yields calls and is given their replies. The blocking and the
asyncio client differ only in how they wait.
"""

from collections.abc import Callable, Generator

from colcast.client._decode import decode_predict_response
from colcast.client._errors import ServerError
from colcast.client._outputs import Ranking
from colcast.client._request import Examples, RequestOptions, Rows, build_request
from colcast.client._schema import ModelSchema, decode_metadata_response, encode_metadata_request
from colcast.client._transport import GET_MODEL_METADATA, PREDICT, Call, Reply

Steps = Generator[Call, Reply, "Ranking"]
SchemaSteps = Generator[Call, Reply, ModelSchema]

# What a server says to a request made for another version of the model.
_STALE_CODES = ("INVALID_ARGUMENT", "FAILED_PRECONDITION")


class Flow:
    """The steps of one client's calls, and the schemas they have learnt."""

    def __init__(self, model: str, version: int | None, version_label: str | None) -> None:
        self._model = model
        self._version = version
        self._label = version_label
        self._known: dict[int | None, ModelSchema] = {}
        self._current: ModelSchema | None = None
        self._answering: int | None = None  # the version that answered last

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

    def rank(
        self,
        inputs: Rows | Examples,
        options: RequestOptions,
        finish: Callable[[Reply], Ranking],
    ) -> Steps:
        """Builds, sends and decodes one request; once more if the model changed in between."""
        schema = yield from self.schema()
        request = build_request(schema, inputs, options)
        try:
            reply = yield Call(PREDICT, request)
        except ServerError as error:
            if error.code not in _STALE_CODES:
                raise
            fresh = yield from self._fetch(self._version)
            if fresh.version == schema.version:
                raise
            reply = yield Call(PREDICT, build_request(fresh, inputs, options))
        return self._answered(finish(reply))

    def send(self, request: bytes, finish: Callable[[Reply], Ranking]) -> Steps:
        """Sends a request built before."""
        reply = yield Call(PREDICT, request)
        return self._answered(finish(reply))

    def _answered(self, ranking: Ranking) -> Ranking:
        if ranking.model_version is not None:
            self._answering = ranking.model_version
        return ranking

    def _fetch(self, version: int | None) -> SchemaSteps:
        label = self._label if version is None else None
        reply = yield Call(GET_MODEL_METADATA, encode_metadata_request(self._model, version, label))
        schema = decode_metadata_response(reply.response)
        self._known[schema.version] = self._current = schema
        return schema


def ranking_of(reply: Reply, score_output: str | None) -> Ranking:
    """Decodes a Predict reply."""
    decoded = decode_predict_response(reply.response)
    return Ranking(decoded.outputs, decoded.model.version, reply.metadata, score_output)
