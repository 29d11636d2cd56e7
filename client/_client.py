"""RankingClient: the blocking client."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

from colcast.client._channel import ChannelOptions
from colcast.client._errors import InputError, ServerError
from colcast.client._flow import Flow, ranking_of
from colcast.client._inputs_examples import merged, serialized, split_context
from colcast.client._outputs import Ranking
from colcast.client._policies import Dedupe, Policies
from colcast.client._request import Examples, RequestOptions, Rows, build_request
from colcast.client._schema import ModelSchema
from colcast.client._targets import Target
from colcast.client._transport import Call, Deadline, Metadata, Reply, Transport

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
        check_settings(target, timeout_seconds, dedupe)
        self._transport = Transport(address, channel or ChannelOptions())
        self._flow = Flow(model, version, version_label)
        self._score_output = score_output
        self._timeout_seconds = timeout_seconds
        self._options = RequestOptions(
            model,
            target,
            signature,
            version,
            version_label,
            dedupe=dedupe,
            policies=policies or Policies(),
        )

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
            items: a list of N dicts, or a dict of N-row lists or arrays.
            target: in place of the client's.
            outputs: the outputs wanted; empty is all.
            timeout_seconds: in place of the client's.
            metadata: request metadata, pairs of lower-case key and value.

        Raises:
            InputError: the data does not fit the model; nothing was sent.
            SchemaError: the model has no signature for the target.
            ServerError: the server refused, or did not answer in time.
        """
        options = self._request_options(target, outputs)
        return self._rank(Rows(items, user), options, timeout_seconds, metadata)

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
        options = self._request_options(target, outputs)
        return self._rank(examples_input(examples), options, timeout_seconds, metadata)

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
        inputs = Rows(items, user) if examples is None else examples_input(examples)
        return build_request(self.schema(), inputs, self._request_options(target, outputs))

    def send(
        self, request: bytes, *, timeout_seconds: float | None = None, metadata: Metadata = ()
    ) -> Ranking:
        """Sends a PredictRequest that `encode` made; errors as for `rank`."""
        steps = self._flow.send(request, self._finish)
        return self._run(steps, timeout_seconds, metadata)

    def schema(self) -> ModelSchema:
        """What the served model wants, asked once a model version."""
        return self._run(self._flow.schema(), None, ())

    def close(self) -> None:
        """Closes the connections. A closed client stays closed."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rank(
        self,
        inputs: Rows | Examples,
        options: RequestOptions,
        timeout_seconds: float | None,
        metadata: Metadata,
    ) -> Ranking:
        steps = self._flow.rank(inputs, options, self._finish)
        return self._run(steps, timeout_seconds, metadata)

    def _request_options(self, target: Target | None, outputs: Sequence[str]) -> RequestOptions:
        return replace(
            self._options, target=target or self._options.target, output_filter=tuple(outputs)
        )

    def _finish(self, reply: Reply) -> Ranking:
        return ranking_of(reply, self._score_output)

    def _run(
        self,
        steps: Generator[Call, Reply, Result],
        timeout_seconds: float | None,
        metadata: Metadata,
    ) -> Result:
        deadline = Deadline(timeout_seconds or self._timeout_seconds)
        try:
            call = next(steps)
            while True:
                try:
                    reply = self._transport.call(call, deadline, metadata)
                except ServerError as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(reply)
        except StopIteration as finished:
            result: Result = finished.value
            return result


def examples_input(examples: Any) -> Examples:
    """A list of tf.Examples, or one ExampleListWithContext, as the input of a request."""
    if hasattr(examples, "SerializeToString"):
        context, examples = split_context(examples)
        return Examples(merged(context, examples))
    return Examples(serialized(examples))


def check_settings(target: str, timeout_seconds: float, dedupe: str) -> None:
    """Refuses settings that cannot work, before anything is opened."""
    if dedupe not in ("auto", "off"):
        raise InputError(f"dedupe must be 'auto' or 'off', got {dedupe!r}")
    if not timeout_seconds > 0:
        raise InputError(f"timeout_seconds must be above 0, got {timeout_seconds!r}")
    if target not in TARGETS:
        raise InputError(
            f"target must be one of {', '.join(TARGETS)}, got {target!r} "
            "(the server's address is the first argument)"
        )


TARGETS = Target.__args__  # type: ignore[attr-defined]
