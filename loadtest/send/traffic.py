"""Sources of requests, by their names on the command line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from colcast.client import RankingClient
from colcast.loadtest.send.formats import RequestData, signature_for
from colcast.loadtest.send.generated import IDS, accepted_by, generated
from colcast.loadtest.send.recorded import recorded_examples, recorded_requests
from colcast.loadtest.send.sizes import Sizes, draw


@dataclass(frozen=True)
class Traffic:
    """The traffic to send.

    Attributes:
      source: `generated`, `zoo:NAME`, `examples:FILE` or `requests:FILE`.
      sizes: the number of candidates per request; recordings have their own.
      distinct: the number of different requests; recordings may have fewer.
      seed: decides sizes and generated values.
      request_id: the feature that identifies the requests in `examples:FILE`.
      user_features: patterns of the user's features, for `generated`.
      signature: the signature whose inputs `generated` fills; None for the columnar one.
      ids: the upper bound of its integers.
    """

    source: str
    sizes: Sizes
    distinct: int
    seed: int
    request_id: str = "request_id"
    user_features: Sequence[str] = ()
    signature: str | None = None
    ids: int = IDS

    def load(self, connect: Callable[[], RankingClient]) -> list[RequestData]:
        """Makes the requests; the same settings always make the same ones.

        Args:
          connect: makes a client for the served model, for sources that need one.

        Raises:
          ValueError: the source does not exist, or its content is malformed.
          OSError: a file cannot be read.
          colcast.client.SchemaError: the source is `generated`, but the model has no columns.
        """
        if self.distinct < 1:
            raise ValueError(f"{self.distinct} distinct requests are none")
        kind, _, name = self.source.partition(":")
        if kind == "examples" and name:
            return recorded_examples(Path(name), self.request_id, self.distinct)
        if kind == "requests" and name:
            return recorded_requests(Path(name), self.distinct)
        sizes = draw(self.sizes, self.distinct, self.seed).tolist()
        if kind == "zoo" and name:
            return zoo_requests(name, sizes, self.seed)
        if self.source == "generated":
            return self._generated(connect, sizes)
        raise ValueError(
            f"traffic {self.source!r}: wanted is generated, zoo:NAME, examples:FILE or "
            "requests:FILE"
        )

    def _generated(
        self, connect: Callable[[], RankingClient], sizes: Sequence[int]
    ) -> list[RequestData]:
        with connect() as client:
            schema = client.schema()
            accepts = accepted_by(client, signature_for(schema, "repeated", self.signature))
            return generated(
                schema, sizes, self.seed, self.user_features, self.signature, self.ids, accepts
            )


def requested(args: SimpleNamespace) -> Traffic:
    """The traffic that `options.traffic_options` and --signature describe."""
    return Traffic(
        args.traffic,
        args.sizes,
        args.distinct,
        args.seed,
        args.request_id,
        args.user_features,
        args.signature,
        args.ids,
    )


def zoo_requests(name: str, sizes: Sequence[int], seed: int) -> list[RequestData]:
    """Makes requests for a model of the zoo, with tf.Examples that TensorFlow itself writes.

    Raises:
      ValueError: there is no such model.
    """
    # Imported here because it needs TensorFlow, which nothing else here does.
    from colcast.zoo.examples import serialize_request
    from colcast.zoo.registry import MODELS

    if name not in MODELS:
        raise ValueError(f"the zoo has no {name!r}; there are {', '.join(MODELS)}")
    return [
        RequestData(len(items), user, items, serialize_request(user, items))
        for user, items in MODELS[name].requests(sizes, seed)
    ]
