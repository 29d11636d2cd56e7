"""What the blocking and the asyncio client have in common: settings, and the steps of a call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from colcast.client._errors import InputError
from colcast.client._flow import BuildSteps, Flow, SchemaSteps, Steps, ranking_of
from colcast.client._inputs_examples import merged, serialized, split_context
from colcast.client._outputs import Ranking
from colcast.client._policies import Dedupe, Policies
from colcast.client._request import Examples, RequestOptions, Rows
from colcast.client._targets import Target, known_target
from colcast.client._transport import Deadline, Reply, check_timeout


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientOptions:
    """Settings of a client, as `RankingClient` explains them; refused where they cannot work."""

    target: Target = "auto"
    signature: str | None = None
    version: int | None = None
    version_label: str | None = None
    score_output: str | None = None
    timeout_seconds: float = 1.0
    dedupe: Dedupe = "auto"
    policies: Policies = field(default_factory=Policies)

    def __post_init__(self) -> None:
        known_target(self.target)
        if self.dedupe not in ("auto", "off"):
            raise InputError(f"dedupe must be 'auto' or 'off', got {self.dedupe!r}")
        check_timeout(self.timeout_seconds)
        if self.version is not None and self.version_label is not None:
            raise InputError("give version or version_label, not both")


class Calls:
    """Makes the steps of each call; how they are waited for is the client's affair."""

    def __init__(self, model: str, options: ClientOptions) -> None:
        self.model = model
        self.options = options
        self._flow = Flow(model, options.version, options.version_label)
        self._request_options = RequestOptions(
            model,
            options.target,
            options.signature,
            options.version,
            options.version_label,
            dedupe=options.dedupe,
            policies=options.policies,
        )

    def deadline(self, timeout_seconds: float | None) -> Deadline:
        """Of a call that starts now; None: what the client was given. InputError unless above 0."""
        if timeout_seconds is None:
            timeout_seconds = self.options.timeout_seconds
        return Deadline(timeout_seconds)

    def rank(
        self,
        user: Mapping[str, Any] | None,
        items: Any,
        target: Target | None,
        outputs: Sequence[str],
    ) -> Steps:
        """The steps that score items."""
        return self._flow.rank(Rows(items, user), self._asking(target, outputs), self._ranking)

    def examples(self, examples: Any, target: Target | None, outputs: Sequence[str]) -> Steps:
        """The steps that score tf.Examples."""
        inputs = _examples_input(examples)
        return self._flow.rank(inputs, self._asking(target, outputs), self._ranking)

    def encode(
        self,
        user: Mapping[str, Any] | None,
        items: Any,
        examples: Any,
        target: Target | None,
        outputs: Sequence[str],
    ) -> BuildSteps:
        """The steps that build a request and leave it unsent."""
        inputs = Rows(items, user) if examples is None else _examples_input(examples)
        return self._flow.build(inputs, self._asking(target, outputs))

    def send(self, request: bytes) -> Steps:
        """The steps that send a request built before."""
        return self._flow.send(request, self._ranking)

    def schema(self) -> SchemaSteps:
        """The steps that find out what the model wants."""
        return self._flow.schema()

    def _asking(self, target: Target | None, outputs: Sequence[str]) -> RequestOptions:
        if isinstance(outputs, str):
            raise InputError(f"outputs must be a list of names, got {outputs!r}")
        return replace(
            self._request_options,
            target=target or self.options.target,
            output_filter=tuple(outputs),
        )

    def _ranking(self, reply: Reply) -> Ranking:
        return ranking_of(reply, self.options.score_output)


def _examples_input(examples: Any) -> Examples:
    """A list of tf.Examples, or one ExampleListWithContext, as the input of a request."""
    descriptor = getattr(examples, "DESCRIPTOR", None)
    if descriptor is not None:
        if descriptor.name != "ExampleListWithContext":
            raise InputError(f"expected a list of tf.Examples, got one {descriptor.name}")
        context, examples = split_context(examples)
        return Examples(merged(context, examples))
    return Examples(serialized(examples))
