"""RankingClient: the blocking client."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Self, TypeVar

from colcast.client._calls import Calls, ClientOptions
from colcast.client._channel import ChannelOptions
from colcast.client._errors import ServerError
from colcast.client._outputs import Ranking
from colcast.client._policies import Dedupe, Policies
from colcast.client._schema import ModelSchema
from colcast.client._targets import Target
from colcast.client._telemetry import call_span
from colcast.client._transport import Call, Metadata, Reply, Transport

Result = TypeVar("Result")


class RankingClient:
    """Ranks candidates with a model behind colcast's server or any TensorFlow Serving.

    Thread-safe. Nothing is sent before the first call: that one asks the server for the
    model's signatures, later ones only when the version that answers changes.

    Example:
        >>> with RankingClient("127.0.0.1:8500", "movies") as client:
        ...     ranking = client.rank(user={"age": 31}, items=[{"movie": 7}, {"movie": 9}])
        ...     ranking.top(1)
        [Ranked(row=1, score=0.83)]
    """

    def __init__(
        self,
        address: str | Sequence[str],
        model: str,
        *,
        target: Target = "auto",
        signature: str | None = None,
        version: int | None = None,
        version_label: str | None = None,
        score_output: str | None = None,
        timeout_seconds: float = 1.0,
        dedupe: Dedupe = "auto",
        policies: Policies | None = None,
        channel: ChannelOptions | None = None,
    ) -> None:
        """Checks the settings; opens no connection.

        Args:
            address: "HOST:PORT", several of them, or a DNS name with several servers behind it:
                calls go round robin to those that are up.
            model: the served model's name.
            target: how requests are written, see `Target`.
            signature: the signature to call in place of the target's usual one.
            version: the model version; None is the server's choice.
            version_label: the label of the version, in place of its number.
            score_output: the output that ranks; None finds it (see `Ranking.scores`).
            timeout_seconds: deadline of a call, with its retries and what it has to look up.
            dedupe: "auto" sends columns that are equal on every row once; "off" does not look.
            policies: what to do about missing values and unused columns.
            channel: TLS, message size, keepalive, compression.

        Raises:
            InputError: a setting that cannot work.
        """
        options = ClientOptions(
            target=target,
            signature=signature,
            version=version,
            version_label=version_label,
            score_output=score_output,
            timeout_seconds=timeout_seconds,
            dedupe=dedupe,
            policies=policies or Policies(),
        )
        self._calls = Calls(model, options)
        self._transport = Transport(address, channel or ChannelOptions())

    def rank(
        self,
        user: Mapping[str, Any] | None = None,
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
        steps = self._calls.rank(user, items, target, outputs)
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
        steps = self._calls.examples(examples, target, outputs)
        return self._run("predict_examples", steps, timeout_seconds, metadata)

    def encode(
        self,
        user: Mapping[str, Any] | None = None,
        items: Any = (),
        *,
        examples: Any = None,
        target: Target | None = None,
        outputs: Sequence[str] = (),
    ) -> bytes:
        """The PredictRequest that `rank` (or `predict_examples`) would send, unsent."""
        steps = self._calls.encode(user, items, examples, target, outputs)
        return self._run("encode", steps).message

    def send(
        self, request: bytes, *, timeout_seconds: float | None = None, metadata: Metadata = ()
    ) -> Ranking:
        """Sends a PredictRequest that `encode` made; errors as for `rank`."""
        return self._run("send", self._calls.send(request), timeout_seconds, metadata)

    def schema(self) -> ModelSchema:
        """What the served model wants, asked once a model version."""
        return self._run("schema", self._calls.schema())

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
        steps: Generator[Call, Reply, Result],
        timeout_seconds: float | None = None,
        metadata: Metadata = (),
    ) -> Result:
        """Makes the calls that the steps ask for, one after the other."""
        deadline = self._calls.deadline(timeout_seconds)
        with call_span(name, self._calls.model, self._transport.address) as span:
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
