"""The options of an export."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

from colcast.export.convert._features import Side
from colcast.export.graph._errors import ExportError
from colcast.export.trials._feature_domains import Patterns, read_domains


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The options of `export_saved_model`.

    Attributes:
      signatures: those to convert; they parse tf.Example or, with `late`, take tensors. The first
        becomes `columnar`, another one `s` `columnar_s`; `s=name` chooses the name.
      user_features: names or patterns (`user_*`) of the features that are the same on every row
        of a request, beside those of an ExampleListWithContext's context; `auto`: those that are
        the same in all recorded requests.
      domains: names or patterns of the features of each other domain, such as `shop`; features
        without a domain are the item's.
      late: also add `columnar_late`, which computes the user's part once per request, and
        `columnar_exact`, which does so as far as scores stay equal to the last bit, and, where the
        model allows it, the stages `columnar_user`, `columnar_item`, `columnar_<domain>` and
        `columnar_pair`.
      context_features: names or patterns of features that depend on user and item or on the moment
        (position, distance): the domain `candidate`, which has no stage.
      exact: "auto" writes `columnar_exact` where it was measured to be faster than `columnar`;
        "always" wherever an op can move.
      default: the new signature that becomes `serving_default`; the present one is kept as
        `serving_examples`.
      examples: TFRecord file of recorded tf.Examples, PredictRequests or PredictionLogs, which are
        scored for the proof beside generated rows.
      warmup: row counts of the warm-up requests to write.
      tolerance: largest relative difference of the late signature's float outputs.
      tags: of the MetaGraph to convert.
      most_parity_bytes: scores are compared only if the variables, which have to be loaded for it,
        take no more than this; parsed features are always compared.
      seed: of the generated rows.
      unserved_signatures: signatures that no server of the model serves (--unserved_signatures
        there): a variable that only they write is as good as a constant.
      measure_seconds: of CPU, for measuring what requests cost; 0 measures nothing.
    """

    signatures: Sequence[str] = ("serving_default",)
    user_features: Sequence[str] = ()
    domains: Patterns = dataclasses.field(default_factory=dict)
    late: bool = False
    context_features: Sequence[str] = ()
    exact: str = "auto"
    default: str | None = None
    examples: str | Path | None = None
    warmup: Sequence[int] = ()
    tolerance: float = 1e-5
    tags: Sequence[str] = ("serve",)
    most_parity_bytes: int = 512 << 20
    seed: int = 0
    unserved_signatures: Sequence[str] = ()
    measure_seconds: float = 0.0

    def __post_init__(self) -> None:
        """Refuses values that no model can be exported with."""
        if self.exact not in ("auto", "always"):
            raise ExportError(f"exact: expected 'auto' or 'always', got {self.exact!r}")
        if self.patterns()[Side.CANDIDATE] and not self.late:
            raise ExportError("--context-features say what the last stage takes: add --late")
        if min(self.warmup, default=1) < 1:
            raise ExportError(f"--warmup: requests have 1 row or more, got {min(self.warmup)}")
        if not 0 <= self.tolerance < math.inf:
            raise ExportError(f"--tolerance: expected 0 or more, got {self.tolerance}")

    def patterns(self) -> Patterns:
        """The patterns of the features of every domain that was named."""
        return read_domains(self.domains, self.user_features, self.context_features)
