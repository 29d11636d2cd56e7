"""The steps of a call to a ranking model, without I/O.

A generator does all steps: get the schema if it is unknown, build the request, send it, notice a
new model version or another kind of server. It yields calls and receives their
replies; the blocking and the asyncio client differ only in how they wait.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from colcast.client._asking import Asking, Steps, predict
from colcast.client._errors import InputError, ServerError
from colcast.client._settings import Target, known_target
from colcast.client.columns._decode import decode_predict_response
from colcast.client.columns._inputs import Rows
from colcast.client.columns._inputs_examples import Examples, examples_of_any
from colcast.client.columns._schema import COLUMNAR_LATE, PREFETCHES
from colcast.client.request._affinity import hash_of_key
from colcast.client.request._item_keys import ItemsByKey, by_key
from colcast.client.request._many_users import Group, build_joined, grouped, read_pairs
from colcast.client.request._outputs import Ranking
from colcast.client.request._prepared import PreparedItems
from colcast.client.request._request import RequestOptions, build_prefetch, prepare_items
from colcast.client.transport._transport import PREDICT, Call, Reply


class Flow(Asking):
    """The steps of one client's calls."""

    def rank(
        self,
        user: Any,
        items: Any,
        item_keys: Any,
        target: Target | None,
        outputs: Sequence[str],
        affinity_key: Any,
    ) -> Steps[Ranking]:
        rows = Rows(by_key(items, item_keys, self._settings), user)
        return self._ask(rows, self._options(target, outputs, affinity_key))

    def examples(
        self, examples: Any, target: Target | None, outputs: Sequence[str], affinity_key: Any
    ) -> Steps[Ranking]:
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
        """Builds a request without sending it."""
        rows = Rows(by_key(items, item_keys, self._settings), user)
        inputs = rows if examples is None else examples_of_any(examples)
        return (yield from self._build(inputs, self._options(target, outputs))).message

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
        options = [replace(asked, affinity=affinity) for affinity in affinities]
        return grouped(schema, read_pairs(pairs, self._settings), options, home)

    def rank_group(self, group: Group) -> Steps[list[Ranking]]:
        """Scores the items of a group's users in one request, or in one per user."""
        if group.plan is not None:
            try:
                reply = yield predict(build_joined(group.plan, group))
            except ServerError as error:
                if not (yield from self._was_stale(group.schema, error)):
                    raise
            else:
                rankings = self._answered(reply).split([batch.rows for batch in group.batches])
                return [
                    _with_keys(ranking, items)
                    for ranking, (_, items) in zip(rankings, group.pairs, strict=True)
                ]
        rankings = list[Ranking]()
        for (user, items), options in zip(group.pairs, group.options, strict=True):
            rankings.append((yield from self._ask(Rows(items, user), options)))
        return rankings

    def prefetch(self, user: Any, affinity_key: Any) -> Steps[bool]:
        """Asks the server to compute and cache a user's state; False if it cannot."""
        schema = yield from self.schema()
        if COLUMNAR_LATE not in schema.signatures or PREFETCHES not in schema.can:
            return False
        built = build_prefetch(schema, user, self._options("late", (), affinity_key))
        try:
            yield predict(built)
        except ServerError as error:
            if not (yield from self._was_stale(schema, error)):
                raise
            return False
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
            affinity=self._affinity(affinity_key),
        )

    def _ask(self, inputs: Rows | Examples, options: RequestOptions) -> Steps[Ranking]:
        """Sends a request and decodes the reply."""
        ranking = self._answered((yield from self._reply(inputs, options)))
        return _with_keys(ranking, inputs.items) if isinstance(inputs, Rows) else ranking

    def _answered(self, reply: Reply) -> Ranking:
        decoded = decode_predict_response(reply.response)
        version = decoded.model.version
        if version is not None:
            self._answering = version
        return Ranking(decoded.outputs, version, reply.metadata, self._settings.score_output)


def _with_keys(ranking: Ranking, items: Any) -> Ranking:
    return replace(ranking, keys=items.keys) if isinstance(items, ItemsByKey) else ranking
