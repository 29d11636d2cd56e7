"""What a call to a ranking model consists of, without the waiting.

The steps (get the schema if there is none, build the request, send it, notice a new model
version, ask in another way where the server refuses one) are one generator that yields calls and
is given their replies. The blocking and the asyncio client differ only in how they wait.
"""

import logging
import re
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from colcast.client._affinity import hash_of_key
from colcast.client._decode import decode_predict_response
from colcast.client._errors import InputError, SchemaError, ServerError
from colcast.client._inputs import Rows
from colcast.client._inputs_examples import Examples, examples_of_any
from colcast.client._item_keys import ItemsByKey, by_key
from colcast.client._many_users import Group, build_joined, grouped, read_pairs
from colcast.client._metadata import decode_metadata_response, encode_metadata_request
from colcast.client._outputs import Ranking
from colcast.client._permission import Permission
from colcast.client._request import (
    Built,
    PreparedItems,
    RequestOptions,
    build_prefetch,
    build_request,
    prepare_items,
)
from colcast.client._schema import COLUMNAR_LATE, USER, ModelSchema
from colcast.client._settings import ClientSettings, Target, known_target
from colcast.client._targets import Plan
from colcast.client._transport import GET_MODEL_METADATA, PREDICT, Call, Reply

Result = TypeVar("Result")
Steps = Generator[Call, Reply, Result]

# What a server says to a request made for another version of the model.
_STALE_CODES = ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
# What a server says to a kind of request that it does not know.
_REFUSED_CODES = (*_STALE_CODES, "UNIMPLEMENTED", "OUT_OF_RANGE")
# Data that does not fit may fit a version we have not heard of; ask at most this often.
_RECHECK_SECONDS = 1.0
_KEPT_VERSIONS = 4

# A server that joins requests (--enable_batching) gives a late model several users at once, which
# the model refuses; or it will not join inputs of 1 and of N rows at all.
_JOINED = re.compile(
    r"Shape of tensor \S*columnar_late/inputs/\S+ \[(?!1[,\]])\d+[,\]]\S*"
    r" is not compatible with expected shape \[1[,\]]"
    r"|must have equal 0th-dimension size"
)
_JOINS = (
    "columnar_late is refused: the server joins the rows of requests (--enable_batching), or fills"
    " up even a lone row (allowed_batch_sizes without 1). Send target='columnar', or 'auto', which"
    " does so by itself for 10 minutes"
)

_log = logging.getLogger("colcast.client")


class Flow:
    """The steps of one client's calls, and what they have learned about the server."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._known: dict[int | None, ModelSchema] = {}
        self._current: ModelSchema | None = None
        self._fetched_at = 0.0
        self._answering: int | None = None  # the version that answered last
        self._expansion = Permission()  # that the server repeats rows
        self._late = Permission()
        self._indices = Permission()  # of any domain's rows
        self._several = Permission()  # users in one request
        self._prefetch = Permission()

    def schema(self) -> Steps[ModelSchema]:
        """The schema of the version that answers; asks the server only if it is not known."""
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
        except ServerError:  # another server answers, or the version went away again
            return current

    def rank(
        self,
        user: Any,
        items: Any,
        item_keys: Any,
        target: Target | None,
        outputs: Sequence[str],
        affinity_key: Any,
    ) -> Steps[Ranking]:
        """Scores items."""
        rows = Rows(by_key(items, item_keys, self._settings), user)
        return self._ask(rows, self._options(target, outputs, affinity_key))

    def examples(
        self, examples: Any, target: Target | None, outputs: Sequence[str], affinity_key: Any
    ) -> Steps[Ranking]:
        """Scores tf.Examples."""
        options = self._options(target, outputs, affinity_key)
        return self._ask(examples_of_any(examples), options)

    def encode(
        self,
        user: Any,
        items: Any,
        item_keys: Any,
        examples: Any,
        target: Target | None,
        outputs: Sequence[str],
    ) -> Steps[bytes]:
        """Builds a request and leaves it unsent."""
        rows = Rows(by_key(items, item_keys, self._settings), user)
        inputs = rows if examples is None else examples_of_any(examples)
        options = self._options(target, outputs)
        # Whoever sends it cannot ask in another way.
        options = replace(options, indexed=options.indexed and self._indices.was_granted)
        return (yield from self._build(inputs, options)).message

    def prepare(self, items: Any, target: Target | None) -> Steps[PreparedItems]:
        """Encodes items for later calls, in the form that a call would send now."""
        options = self._options(target, ())
        prepared = PreparedItems(items)
        prepare_items((yield from self.schema()), prepared, options)
        return prepared

    def group(
        self,
        pairs: Sequence[tuple[Any, ...]],
        target: Target | None,
        outputs: Sequence[str],
        affinity_keys: Sequence[Any] | None,
        home: Callable[[str], str],
    ) -> Steps[list[Group]]:
        """Divides users into groups that share a request."""
        keys = [None] * len(pairs) if affinity_keys is None else affinity_keys
        if len(keys) != len(pairs):
            raise InputError(f"{len(keys)} affinity_keys for {len(pairs)} pairs")
        asked = self._options(target, outputs)
        affinities = [self._affinity(key) for key in keys]
        schema = yield from self.schema()
        together = self._several.ask()  # what takes no index of users takes none
        asked = replace(asked, indexed=asked.indexed and together)
        options = [replace(asked, affinity=affinity) for affinity in affinities]
        return grouped(schema, read_pairs(pairs, self._settings), options, together, home)

    def rank_group(self, group: Group) -> Steps[list[Ranking]]:
        """Scores the items of a group's users in one request, or else in one per user."""
        if group.plan is not None:
            try:
                reply = yield from self._joined(group, group.plan)
            except ServerError as error:
                if error.code not in _REFUSED_CODES:
                    raise
            else:
                self._several.granted()
                rankings = self._answered(reply).split([batch.rows for batch in group.batches])
                return [
                    _with_keys(ranking, items)
                    for ranking, (_, items) in zip(rankings, group.pairs, strict=True)
                ]
        rankings = list[Ranking]()
        for (user, items), options in zip(group.pairs, group.options, strict=True):
            if group.plan is not None:
                options = replace(options, indexed=False)
            rankings.append((yield from self._ask(Rows(items, user), options)))
        if group.plan is not None:
            self._several.refused()
        return rankings

    def _joined(self, group: Group, plan: Plan) -> Steps[Reply]:
        """The reply to all users of a group; each candidate apart if only that is answered."""
        built = build_joined(plan, group)
        try:
            reply = yield _predict(built)
        except ServerError as error:
            if error.code not in _REFUSED_CODES or built.distinct.keys() == {USER}:
                raise
            plan = replace(plan, domains={})
            reply = yield _predict(build_joined(plan, group))
            self._indices.refused()
        else:
            self._learn_indices(built)
        return reply

    def prefetch(self, user: Any, affinity_key: Any) -> Steps[bool]:
        """Lets the server compute and keep a user's state; False where it refused."""
        schema = yield from self.schema()
        if COLUMNAR_LATE not in schema.signatures or not self._prefetch.ask():
            return False
        built = build_prefetch(schema, user, self._options("late", (), affinity_key))
        try:
            yield _predict(built)
        except ServerError as error:
            if error.code not in _REFUSED_CODES:
                raise
            self._prefetch.refused()
            return False
        self._prefetch.granted()
        return True

    def send(self, request: bytes, affinity_key: Any) -> Steps[Ranking]:
        """Sends a request that `encode` built."""
        return self._answered((yield Call(PREDICT, request, affinity=self._affinity(affinity_key))))

    def _affinity(self, key: Any) -> str:
        return "" if key is None else hash_of_key(key, self._settings)

    def _options(
        self, target: Target | None, outputs: Sequence[str], affinity_key: Any = None
    ) -> RequestOptions:
        if isinstance(outputs, str):
            raise InputError(f"outputs must be a list of names, got {outputs!r}")
        target = known_target(target or self._settings.target)
        return RequestOptions(
            self._settings,
            target,
            tuple(outputs),
            late=target != "auto" or self._late.ask(),
            server_expands=target != "auto" or self._expansion.ask(),
            indexed=self._indices.ask(),
            affinity=self._affinity(affinity_key),
        )

    def _build(self, inputs: Rows | Examples, options: RequestOptions) -> Steps[Built]:
        """Builds one request; once more if the model changed since its schema was read."""
        schema = yield from self.schema()
        try:
            return build_request(schema, inputs, options)
        except (InputError, SchemaError):
            if time.monotonic() - self._fetched_at < _RECHECK_SECONDS:
                raise
            if not (yield from self._changed_since(schema)):
                raise
        return build_request((yield from self.schema()), inputs, options)

    def _ask(self, inputs: Rows | Examples, options: RequestOptions) -> Steps[Ranking]:
        """Asks and decodes the reply."""
        ranking = self._answered((yield from self._reply(inputs, options)))
        return _with_keys(ranking, inputs.items) if isinstance(inputs, Rows) else ranking

    def _reply(self, inputs: Rows | Examples, options: RequestOptions) -> Steps[Reply]:
        """Builds and sends one request; another one if the server refuses this way."""
        schema = yield from self.schema()
        built = yield from self._build(inputs, options)
        try:
            reply = yield _predict(built)
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
        """The reply to the same question, asked as the server may take it; else its error."""
        if (yield from self._changed_since(schema)):
            return (yield _predict((yield from self._build(inputs, options))))
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
        """The reply to repeated columns, for a server that does not take the late signature."""
        options = replace(options, late=False)
        built = yield from self._build(inputs, options)
        if built.target == "late":
            raise error
        try:
            reply = yield from self._repeated(inputs, options, built, error)
        except ServerError as again:
            if again is not error:  # the server told why, whatever is amiss now
                self._late.refused()
            raise
        self._late.refused()
        return reply

    def _repeated(
        self, inputs: Rows | Examples, options: RequestOptions, built: Built, error: ServerError
    ) -> Steps[Reply]:
        """The reply to what was built, else to rows in full; if refused too, the first error."""
        try:
            return (yield _predict(built))
        except ServerError as again:
            if again.code not in _REFUSED_CODES:
                raise
            if not self._may_be_unexpanded(built, again):
                raise error from None
        return (yield from self._in_full(inputs, options, error))

    def _may_be_unexpanded(self, built: Built, error: ServerError) -> bool:
        """Whether a server that does not repeat rows would have refused the request so."""
        never_seen = built.needs_expansion and not self._expansion.was_granted
        return never_seen and error.code == "INVALID_ARGUMENT"

    def _in_full(
        self, inputs: Rows | Examples, options: RequestOptions, error: ServerError
    ) -> Steps[Reply]:
        """The reply to rows in full; if they are refused too, the first error."""
        built = yield from self._build(inputs, replace(options, server_expands=False))
        try:
            reply = yield _predict(built)
        except ServerError as again:
            if again.code not in _REFUSED_CODES:
                raise
            raise error from None
        self._expansion.refused()
        return reply

    def _learn_indices(self, built: Built) -> None:
        """From a request that was answered."""
        if built.distinct.keys() - {USER}:
            self._indices.granted()

    def _changed_since(self, schema: ModelSchema) -> Steps[bool]:
        try:
            fresh = yield from self._fetch(self._settings.version)
        except ServerError:
            return False
        return fresh.version != schema.version

    def _answered(self, reply: Reply) -> Ranking:
        decoded = decode_predict_response(reply.response)
        version = decoded.model.version
        if version is not None:
            self._answering = version
        return Ranking(decoded.outputs, version, reply.metadata, self._settings.score_output)

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


def _with_keys(ranking: Ranking, items: Any) -> Ranking:
    return replace(ranking, keys=items.keys) if isinstance(items, ItemsByKey) else ranking


def _predict(built: Built) -> Call:
    facts = {
        "target": built.target,
        "signature": built.signature,
        "candidates": built.rows,
        "columns_not_sent": built.unused,
        "request_bytes": len(built.message),
    }
    facts |= {f"rows_of.{domain}": rows for domain, rows in built.distinct.items()}
    return Call(PREDICT, built.message, facts, built.affinity)
