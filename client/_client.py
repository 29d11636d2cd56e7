"""RankingClient: the blocking client."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from colcast.client._asking import Result, Steps
from colcast.client._errors import ServerError
from colcast.client._flow import Flow
from colcast.client._settings import ClientSettings, Target
from colcast.client.columns._schema import ModelSchema
from colcast.client.request._affinity import AffinityKey
from colcast.client.request._many_users import MANY_IN_FLIGHT, Group, in_order
from colcast.client.request._outputs import Ranking
from colcast.client.request._prepared import PreparedItems
from colcast.client.transport._telemetry import call_span
from colcast.client.transport._transport import Closing, Deadline, Metadata, Transport


class RankingClient(ClientSettings, Closing):
    """Ranks candidates with a model behind colcast's server or any TensorFlow Serving.

    `ClientSettings` lists its arguments. Thread-safe. The first call asks the server for the
    model's signatures; later calls ask again only when another version answers.

    Example:
        >>> with RankingClient("127.0.0.1:8500", "movies") as client:
        ...     ranking = client.rank(user={"age": 31}, items=[{"movie": 7}, {"movie": 9}])
        ...     ranking.top(1)
        [Ranked(row=1, score=0.83)]
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._flow = Flow(self)
        self._transport = Transport(self.address, self.channel)

    def rank(
        self,
        user: Any = None,
        items: Any = (),
        *,
        item_keys: Any = None,
        target: Target | None = None,
        outputs: Sequence[str] = (),
        affinity_key: AffinityKey | None = None,
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Ranking:
        """Scores N candidates for one user.

        Args:
            user: feature -> value; sent as one row. None: `items` holds every feature, and features
                equal on all rows are found and sent once.
            items: a list of N dicts, a dict of N-row lists or arrays, a pandas or Polars
                DataFrame, or a pyarrow Table.
            item_keys: N keys (integers or strings) of candidates in the server's item table;
                `items` then has only features that override the table's. A list for the client's
                `item_key`, or {name of the key: list}.
            target: overrides the client's target.
            outputs: the outputs to return; empty for all.
            affinity_key: identifies the user (text, bytes or an integer): calls with the same key
                go to the same server. None: a hash of the user's columns.
            timeout_seconds: overrides the client's timeout.
            metadata: request metadata, pairs of lower-case key and value.

        Raises:
            InputError: the data does not fit the model; nothing was sent.
            SchemaError: the model has no signature for the target.
            ServerError: the server refused, or did not answer in time.
        """
        steps = self._flow.rank(user, items, item_keys, target, outputs, affinity_key)
        return self._run("rank", steps, timeout_seconds, metadata, data=items)

    def prepare(self, items: Any, *, target: Target | None = None) -> PreparedItems:
        """Encodes N candidates once, for ranking them for many users.

        Args:
            items: as for `rank`.
            target: overrides the client's target; a call with another target encodes them again.

        Returns:
            A value that `rank` and `rank_many` accept instead of the items.

        Raises:
            InputError: the items do not fit the model.
            SchemaError: the model has no signature for the target.
            ServerError: the server did not send the model's signatures.
        """
        return self._run("prepare", self._flow.prepare(items, target), data=None)

    def rank_many(
        self,
        pairs: Sequence[tuple[Any, ...]],
        *,
        target: Target | None = None,
        outputs: Sequence[str] = (),
        affinity_keys: Sequence[AffinityKey] | None = None,
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> list[Ranking]:
        """Scores the candidates of several users, in one request if the server supports that.

        This needs a model that was exported with --late, behind colcast's server; other servers get
        one request per user. Users share requests of at most 4,096 candidates; a user with more
        gets a separate request. At most 8 requests are in flight at a time.

        `pairs` has (user, items) or (user, items, item_keys) for each user, `affinity_keys` a key
        for each pair; users share a request only if they belong to the same server. The timeout is
        that of each request. Other arguments and errors are those of `rank`.

        Returns:
            One ranking per user, in the order of the pairs.
        """
        steps = self._flow.group(pairs, target, outputs, affinity_keys, self._transport.home)
        return self._ranked(steps, timeout_seconds, metadata)

    def prefetch(
        self,
        user: Any,
        *,
        affinity_key: AffinityKey | None = None,
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> bool:
        """Asks the server to compute and cache a user's state before the candidates are known.

        Call it while retrieval still runs: `rank` with the same user features then finds the state.
        It is only a hint; a server without a state cache ignores it.

        The arguments and errors are those of `rank`.

        Returns:
            False if the model has no `columnar_late`, or if the server does not declare that it
            accepts a request without candidates, as colcast's server does.
        """
        return self._run(
            "prefetch", self._flow.prefetch(user, affinity_key), timeout_seconds, metadata
        )

    def predict_examples(
        self,
        examples: Any,
        *,
        target: Target | None = None,
        outputs: Sequence[str] = (),
        affinity_key: AffinityKey | None = None,
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Ranking:
        """Scores candidates that are given as tf.Examples, one per row.

        The client converts the examples to columns and sends features equal on every row once. With
        target "example" it sends them unchanged.

        `examples` are `tf.train.Example` protos or their serialized bytes, or one
        ExampleListWithContext proto. Other arguments and errors are those of `rank`.
        """
        steps = self._flow.examples(examples, target, outputs, affinity_key)
        return self._run("predict_examples", steps, timeout_seconds, metadata, data=examples)

    def encode(
        self,
        user: Any = None,
        items: Any = (),
        *,
        item_keys: Any = None,
        examples: Any = None,
        target: Target | None = None,
        outputs: Sequence[str] = (),
    ) -> bytes:
        """Encodes the PredictRequest that `rank` or `predict_examples` would send."""
        steps = self._flow.encode(user, items, item_keys, examples, target, outputs)
        return self._run("encode", steps)

    def send(
        self,
        request: bytes,
        *,
        affinity_key: AffinityKey | None = None,
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Ranking:
        """Sends a PredictRequest that `encode` made; errors as for `rank`."""
        return self._run("send", self._flow.send(request, affinity_key), timeout_seconds, metadata)

    def schema(self) -> ModelSchema:
        """The signatures of the served model, requested once per version."""
        return self._run("schema", self._flow.schema())

    def _ranked(
        self, steps: Steps[list[Group]], timeout_seconds: float | None, metadata: Metadata
    ) -> list[Ranking]:
        """The rankings of all groups, in the order of the pairs."""
        groups = self._run("rank_many", steps, timeout_seconds, metadata)

        def ranked(group: Group) -> list[Ranking]:
            steps = self._flow.rank_group(group)
            return self._run("rank_many", steps, timeout_seconds, metadata, each=True)

        if len(groups) <= 1:
            return ranked(groups[0]) if groups else []
        with ThreadPoolExecutor(MANY_IN_FLIGHT) as pool:
            return in_order(groups, list(pool.map(ranked, groups)))

    def _run(
        self,
        name: str,
        steps: Steps[Result],
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
        *,
        each: bool = False,
        data: Any = (),
    ) -> Result:
        """Makes the calls that the steps yield, one after another.

        With `each`, the timeout applies to each call instead of to all calls together. `data`, used
        only by the asyncio client, is the data to encode; None means a large amount.
        """
        timeout = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        deadline = Deadline(timeout)
        with call_span(name, self.model, self._transport.address) as span:
            try:
                call = next(steps)
                while True:
                    deadline = Deadline(timeout) if each else deadline
                    try:
                        reply = self._transport.call(call, deadline, span.sends(call, metadata))
                    except ServerError as error:
                        span.refused(error)
                        call = steps.throw(error)
                    else:
                        span.answered(reply)
                        call = steps.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                return result
