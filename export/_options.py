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
      signatures: the signatures to convert, which parse tf.Example or, with `late`, take tensors.
        The first one becomes `columnar`, any other `s` becomes `columnar_s`; `s=name` chooses the
        name.
      user_features: names or patterns (`user_*`) of the features that are the same on every row of
        a request, in addition to the context features of an ExampleListWithContext; `auto` means
        the features for which this holds in all recorded requests.
      domains: names or patterns of the features of each further domain, such as `shop`. Features
        without a domain are the item's.
      late: also add `columnar_late`, which computes the user part once per request;
        `columnar_exact`, which moves only ops that keep scores bit-identical; and, if the model
        allows it, the stages `columnar_user`, `columnar_item`, `columnar_<domain>` and
        `columnar_pair`.
      context_features: names or patterns of features that depend on user and item, or on the moment
        (position, distance). They form the domain `candidate`, which has no stage.
      exact: "auto" writes `columnar_exact` if it is measurably faster than `columnar`; "always"
        writes it if any op can move.
      default: the new signature that becomes `serving_default`; the old default is renamed to
          `serving_examples`.
      examples: a TFRecord file of recorded tf.Examples, PredictRequests or PredictionLogs, which
        are scored for the proof in addition to generated rows.
      warmup: row counts of the warm-up requests to write.
      tolerance: largest relative difference of the late signature's float outputs.
      tags: tags of the MetaGraph to convert.
      most_parity_bytes: scores are compared only if the variables have at most this many bytes,
          because comparing loads them; parsed features are always compared.
      seed: seed of the generated rows.
      table_type: "int8" also writes float32 tables rounded to this type, which a server may use
          instead.
      unserved_signatures: signatures that no server of the model serves (the server's
        --unserved_signatures): a variable that only they write counts as a constant.
      measure_seconds: CPU seconds for measuring what requests cost; 0 measures nothing.
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
    table_type: str | None = None

    def __post_init__(self) -> None:
        """Raises ExportError for invalid values."""
        if self.exact not in ("auto", "always"):
            raise ExportError(f"exact: expected 'auto' or 'always', got {self.exact!r}")
        if self.patterns()[Side.CANDIDATE] and not self.late:
            raise ExportError("--context-features name inputs of the last stage: add --late")
        if self.table_type == "bfloat16":
            raise ExportError("--table-type bfloat16 was removed: use int8, half the size")
        if self.table_type not in (None, "int8"):
            raise ExportError(f"--table-type: expected 'int8', got {self.table_type!r}")
        if min(self.warmup, default=1) < 1:
            raise ExportError(f"--warmup: expected 1 row or more, got {min(self.warmup)}")
        if not 0 <= self.tolerance < math.inf:
            raise ExportError(f"tolerance: expected 0 or more, got {self.tolerance}")

    def patterns(self) -> Patterns:
        """The patterns of each domain, including those of the user and the candidates."""
        return read_domains(self.domains, self.user_features, self.context_features)
