"""The signatures of the served model and their features."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from colcast.client._errors import SchemaError
from colcast.client.columns._dtypes import INT64, STRING, Array, DType

Shape = tuple[int | None, ...]

LENGTH_SUFFIX = "/length"
COLUMNAR, COLUMNAR_LATE, COLUMNAR_PAIR = "columnar", "columnar_late", "columnar_pair"
USER, ITEM = "user", "item"
# What servers can do beyond TensorFlow Serving: repeat single rows, read a domain's distinct rows
# through an index, answer several users in one request, compute a user's state without candidates.
EXPANDS, INDEXES, TAKES_USERS, PREFETCHES = "expand", "index", "users", "prefetch"
# The prefix of row_to_<domain>, int64 [N], which gives each candidate's row of the domain.
ROW_TO = "row_to_"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A declared input or output; None in `shape` means any size, a `shape` of None any rank."""

    name: str
    dtype: DType
    shape: Shape | None


class Kind(Enum):
    """How the values of one candidate are laid out in a feature's column.

    SINGLE: the same number of values on every row: [rows, *shape].
    MULTI: a list of any length: [rows, longest], padded, with `feature/length` int64 [rows].
    SEQUENCE: a list whose padding the model sees: [rows, longest, *rest], no lengths.
    WHOLE: no row dimension (a scalar, a fixed first dimension, or one of several inputs of unknown
        rank): sent unchanged.
    """

    SINGLE = "single"
    MULTI = "multi"
    SEQUENCE = "sequence"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a signature: one input, or two if it is multi-valued.

    Attributes:
        name: the input's name.
        dtype: the dtype of its values.
        kind: how values are laid out.
        shape: the declared shape, without the row dimension unless WHOLE; None if it is unknown.
        one_row: whether it is declared with exactly one row, like a late model's user features.
        default: its value when absent, [1, *shape]; None if it must be given.
    """

    name: str
    dtype: DType
    kind: Kind
    shape: Shape | None
    one_row: bool = False
    default: Array | None = None

    def __str__(self) -> str:
        """The type of a row's value, such as "int64 [3], user"."""
        sizes = "any" if self.shape is None else ", ".join(str(s or "any") for s in self.shape)
        shape = "" if self.shape == () else f" [{sizes}]"
        notes = [f"{self.dtype}{shape}"]
        if self.kind is not Kind.SINGLE:
            notes.append({"multi": "list", "whole": "not by rows"}.get(self.kind.value, "sequence"))
        if self.one_row:
            notes.append("user")
        if self.default is not None:
            value = self.default.ravel().tolist()
            notes.append(f"default {value[0] if len(value) == 1 else value}")
        return ", ".join(notes)


@dataclass(frozen=True)
class Signature:
    """One signature of the served model."""

    name: str
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    defaults: Mapping[str, Array]
    method: str = ""

    @cached_property
    def features(self) -> dict[str, Feature]:
        """The inputs as features; a multi-valued feature is combined with its lengths."""
        return {
            name: self._feature(spec)
            for name, spec in self.inputs.items()
            if not self._is_length(name)
        }

    @cached_property
    def filled(self) -> frozenset[str]:
        """The features for which a server fills in a default: all their inputs have one."""
        return frozenset(
            name
            for name, feature in self.features.items()
            if name in self.defaults
            and (feature.kind is not Kind.MULTI or name + LENGTH_SUFFIX in self.defaults)
        )

    @property
    def takes_examples(self) -> bool:
        """Whether its only input may be serialized tf.Examples: strings, one per row."""
        specs = list(self.inputs.values())
        if [spec.dtype for spec in specs] != [STRING] or self.name.startswith(COLUMNAR):
            return False
        return len(specs[0].shape or ()) < 2

    @property
    def declares_examples(self) -> bool:
        """Whether its method or its input's name implies that it takes tf.Examples."""
        named = any("example" in name.lower() for name in self.inputs)
        return self.takes_examples and (named or self.method in _METHODS_OF_EXAMPLES)

    def _is_length(self, name: str) -> bool:
        base = name.removesuffix(LENGTH_SUFFIX)
        return base != name and self._is_multi(base)

    def _is_multi(self, name: str) -> bool:
        spec, length = self.inputs.get(name), self.inputs.get(name + LENGTH_SUFFIX)
        if spec is None or length is None or length.dtype is not INT64:
            return False
        return spec.shape is not None and len(spec.shape) == 2 and spec.shape[1] is None

    def _feature(self, spec: TensorSpec) -> Feature:
        default = self.defaults.get(spec.name)
        if spec.shape is None:
            kind = Kind.SINGLE if len(self.inputs) == 1 else Kind.WHOLE
            return Feature(spec.name, spec.dtype, kind, None, default=default)
        if not spec.shape or spec.shape[0] not in (None, 1):
            return Feature(spec.name, spec.dtype, Kind.WHOLE, spec.shape, default=default)
        inner, one_row = spec.shape[1:], spec.shape[0] == 1
        if self._is_multi(spec.name):
            kind = Kind.MULTI
            length = self.defaults.get(spec.name + LENGTH_SUFFIX)
            if default is not None and length is not None:
                default = default.reshape(1, -1)[:, : int(length.reshape(-1)[0])]
        else:
            kind = Kind.SEQUENCE if None in inner else Kind.SINGLE
        return Feature(spec.name, spec.dtype, kind, inner, one_row, default)


@dataclass(frozen=True, eq=False, repr=False)
class ModelSchema:
    """The signatures of one version of a served model; equal only to itself.

    Printing it lists each signature's features and outputs. `can` lists what the server declares
    that it can do; stock TensorFlow Serving declares nothing.
    """

    model: str
    version: int | None
    signatures: Mapping[str, Signature]
    unreadable: tuple[str, ...] = ()  # signatures with tensors that cannot be sent (variants)
    can: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        lines = [f"model {self.model!r}, version {self.version}"]
        for name, signature in sorted(self.signatures.items()):
            named = sorted(signature.outputs.items())
            outputs = ", ".join(f"{key} {spec.dtype}" for key, spec in named)
            lines.append(f"{name} -> {outputs}")
            if signature.takes_examples:
                what = "string" if self.takes_text(signature) else "serialized tf.Examples"
                lines.append(f"  {next(iter(signature.inputs))}: {what}")
                continue
            width = max(map(len, signature.features), default=0)
            for _, feature in sorted(signature.features.items()):
                lines.append(f"  {feature.name:<{width}}  {feature}")
        return "\n".join(lines)

    @cached_property
    def user_features(self) -> dict[str, bytes]:
        """The user's features according to the late signature, sorted: name -> UTF-8."""
        late = self.signatures.get(COLUMNAR_LATE)
        features = sorted(late.features.items()) if late else ()
        return {name: name.encode() for name, feature in features if feature.one_row}

    def signature(self, name: str) -> Signature:
        """The signature of this name.

        Raises:
            SchemaError: there is none; the message lists those that exist.
        """
        if name not in self.signatures:
            if name in self.unreadable:
                raise SchemaError(f"signature {name!r} has tensors of a dtype that cannot be sent")
            raise SchemaError(
                f"model {self.model!r} version {self.version} has no signature {name!r}; "
                f"it has {', '.join(sorted(self.signatures))}"
            )
        return self.signatures[name]

    def example_signature(self) -> Signature:
        """The signature that takes serialized tf.Examples and can be called by Predict.

        Raises:
            SchemaError: no signature has a single string input.
        """
        found = [s for s in self.signatures.values() if s.takes_examples]
        found.sort(key=lambda s: (s.method != _PREDICT, s.name != "serving_default", s.name))
        if not found:
            raise SchemaError(
                f"model {self.model!r} version {self.version} has no signature that takes "
                f"tf.Examples; it has {', '.join(sorted(self.signatures))}"
            )
        return found[0]

    def columnar_signature(self) -> Signature | None:
        """The signature that takes columns, the exporter's or the model's own; None if none."""
        own = self.signatures.get(COLUMNAR) or self.signatures.get("serving_default")
        if own is None or (own.takes_examples and not self.takes_text(own)):
            return None
        return own

    def columns_of(self, called: Signature) -> Signature | None:
        """The signature that takes columns of the features that this one parses; None if unknown.

        The metadata does not name it. The exporter derives its name from this signature's, unless
        the caller chose another name. `columnar` is assumed to be made from the default signature.
        Both must have the same outputs.
        """
        found = self.signatures.get(f"{COLUMNAR}_{called.name}")
        if found is None and called is self.example_signature():
            found = self.signatures.get(COLUMNAR) or self.signatures.get("serving_default")
        if found is None or found.takes_examples or _outputs(found) != _outputs(called):
            return None
        return found

    def domains_of(self, called: Signature) -> dict[str, frozenset[str]]:
        """Each domain's features whose rows a request may send once and reference by index.

        These are the domains that have a stage. If a model has stages, colcast's server accepts an
        index in `columnar` and `columnar_late`.
        """
        late, pair = self.signatures.get(COLUMNAR_LATE), self.signatures.get(COLUMNAR_PAIR)
        if late is None or late.features.keys() != called.features.keys():
            return {}
        if any(feature.kind is Kind.WHOLE for feature in late.features.values()):
            return {}
        indexed = [name for name in (pair.inputs if pair else ()) if name.startswith(ROW_TO)]
        domains = (ITEM, *(name.removeprefix(ROW_TO) for name in sorted(indexed))) if pair else ()
        stages = {domain: self.signatures.get(f"{COLUMNAR}_{domain}") for domain in domains}
        found = {domain: frozenset(stage.features) for domain, stage in stages.items() if stage}
        return found | {USER: frozenset(self.user_features)}

    def takes_text(self, called: Signature) -> bool:
        """Whether the signature's only input counts as a column of strings, not as tf.Examples.

        It does if neither its declaration nor a matching columnar signature says tf.Examples.
        """
        if not called.takes_examples or called.declares_examples:
            return False
        return self.columns_of(called) is None


_PREDICT = "tensorflow/serving/predict"
_METHODS_OF_EXAMPLES = ("tensorflow/serving/classify", "tensorflow/serving/regress")


def _outputs(signature: Signature) -> dict[str, DType]:
    return {name: spec.dtype for name, spec in signature.outputs.items()}
