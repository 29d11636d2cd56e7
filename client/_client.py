"""RankingClient: the blocking client."""

from collections.abc import Sequence
from typing import Any, Self

from colcast.client._errors import ServerError
from colcast.client._flow import Flow, Result, Steps
from colcast.client._outputs import Ranking
from colcast.client._schema import ModelSchema
from colcast.client._settings import ClientSettings, Target
from colcast.client._telemetry import call_span
from colcast.client._transport import Deadline, Metadata, Transport


class RankingClient(ClientSettings):
    """Ranks candidates with a model behind colcast's server or any TensorFlow Serving.

    Thread-safe. Nothing is sent before the first call: that one asks the server for the
    model's signatures, later ones only when the version that answers changes.

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
        target: Target | None = None,
        outputs: Sequence[str] = (),
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Ranking:
        """Scores N candidates for one user.

        Args:
            user: feature -> value; sent as one row. None: `items` holds every feature, and
                those equal on all rows are found and sent once.
            items: a list of N dicts, a dict of N-row lists or arrays, a pandas or Polars
                DataFrame, or a pyarrow Table.
            target: in place of the client's.
            outputs: the outputs wanted; empty is all.
            timeout_seconds: in place of the client's.
            metadata: request metadata, pairs of lower-case key and value.

        Raises:
            InputError: the data does not fit the model; nothing was sent.
            SchemaError: the model has no signature for the target.
            ServerError: the server refused, or did not answer in time.
        """
        steps = self._flow.rank(user, items, target, outputs)
        return self._run("rank", steps, timeout_seconds, metadata)

    def predict_examples(
        self,
        examples: Any,
        *,
        target: Target | None = None,
        outputs: Sequence[str] = (),
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Ranking:
        """Scores candidates that are at hand as tf.Examples, one a row.

        The examples become columns here; features equal on every row are sent once. With
        target "example" they are sent as they are.

        Args:
            examples: `tf.train.Example` protos or their serialized bytes; or one
                ExampleListWithContext proto.
            target: in place of the client's.
            outputs: the outputs wanted; empty is all.
            timeout_seconds: in place of the client's.
            metadata: request metadata.

        Raises:
            InputError: an entry that is no tf.Example, or does not fit the model.
            SchemaError: the model has no signature for the target.
            ServerError: the server refused, or did not answer in time.
        """
        steps = self._flow.examples(examples, target, outputs)
        return self._run("predict_examples", steps, timeout_seconds, metadata)

    def encode(
        self,
        user: Any = None,
        items: Any = (),
        *,
        examples: Any = None,
        target: Target | None = None,
        outputs: Sequence[str] = (),
    ) -> bytes:
        """The PredictRequest that `rank` (or `predict_examples`) would send, unsent."""
        steps = self._flow.encode(user, items, examples, target, outputs)
        return self._run("encode", steps)

    def send(
        self, request: bytes, *, timeout_seconds: float | None = None, metadata: Metadata = ()
    ) -> Ranking:
        """Sends a PredictRequest that `encode` made; errors as for `rank`."""
        return self._run("send", self._flow.send(request), timeout_seconds, metadata)

    def schema(self) -> ModelSchema:
        """What the served model wants, asked once a model version."""
        return self._run("schema", self._flow.schema())

    def close(self) -> None:
        """Closes the connections. A closed client stays closed."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(
        self,
        name: str,
        steps: Steps[Result],
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Result:
        """Makes the calls that the steps ask for, one after the other."""
        deadline = Deadline(self.timeout_seconds if timeout_seconds is None else timeout_seconds)
        with call_span(name, self.model, self._transport.address) as span:
            try:
                call = next(steps)
                while True:
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
