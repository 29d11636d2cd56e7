"""The columnar signature in the form that late expansion needs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from colcast.export.graph._errors import ExportError


@dataclass(frozen=True)
class Signature:
    """Maps names of inputs and outputs to tensors.

    Attributes:
        user: inputs that have one row per request.
        items: inputs that have one row per candidate.
        shared: inputs without a row dimension: scalars and fixed first dimensions.
        outputs: the outputs.
    """

    user: dict[str, str]
    items: dict[str, str]
    shared: dict[str, str]
    outputs: dict[str, str]

    @property
    def inputs(self) -> dict[str, str]:
        return {**self.once, **self.items}

    @property
    def once(self) -> dict[str, str]:
        """The inputs that have one row per request."""
        return {**self.user, **self.shared}

    def moved(self, inputs: Mapping[str, str], outputs: dict[str, str]) -> "Signature":
        """The same signature with other tensors."""
        user, items, shared = (
            {name: inputs[name] for name in side} for side in (self.user, self.items, self.shared)
        )
        return Signature(user, items, shared, outputs)


def read_signature(meta_graph: Any, name: str, user_columns: Collection[str]) -> Signature:
    """Reads a columnar signature and groups its inputs by domain.

    Raises:
        ExportError: the signature does not exist, an input or output is not a plain tensor, or all
            features are the user's.
    """
    if name not in meta_graph.signature_def:
        known = ", ".join(sorted(meta_graph.signature_def)) or "none"
        raise ExportError(f"no signature {name!r} to expand late; the model has: {known}")
    signature = meta_graph.signature_def[name]
    for key, info in [*signature.inputs.items(), *signature.outputs.items()]:
        if info.WhichOneof("encoding") != "name":
            encoding = info.WhichOneof("encoding")
            raise ExportError(f"signature {name!r}: {key!r} is {encoding}, expected a dense tensor")
    for key, info in signature.inputs.items():
        if info.tensor_shape.unknown_rank:
            raise ExportError(f"signature {name!r}: the rank of {key!r} is unknown")
    batched = {key: info.name for key, info in signature.inputs.items() if _is_batched(info)}
    read = Signature(
        user={key: tensor for key, tensor in batched.items() if key in user_columns},
        items={key: tensor for key, tensor in batched.items() if key not in user_columns},
        shared={k: info.name for k, info in signature.inputs.items() if k not in batched},
        outputs={key: info.name for key, info in signature.outputs.items()},
    )
    if not read.items:
        raise ExportError(
            f"signature {name!r}: every feature is the user's"
            f" ({', '.join(sorted(user_columns))}); a late signature needs an item feature, whose"
            " rows are the candidates"
        )
    return read


def read_late_signature(meta_graph: Any, name: str, columnar: str) -> Signature:
    """Reads a late signature, whose user inputs are declared with one row."""
    signature = meta_graph.signature_def[name]
    before = meta_graph.signature_def[columnar].inputs
    sides: dict[str, dict[str, str]] = {"user": {}, "items": {}, "shared": {}}
    for key, info in signature.inputs.items():
        if not _is_batched(before[key]):
            side = "shared"
        else:
            side = "items" if _is_batched(info) else "user"
        sides[side][key] = info.name
    return Signature(**sides, outputs={k: info.name for k, info in signature.outputs.items()})


def _is_batched(info: Any) -> bool:
    shape = info.tensor_shape
    return bool(shape.dim and shape.dim[0].size == -1)
