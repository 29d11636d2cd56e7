"""Chooses and writes the form of a request, which decides who repeats the user's row."""

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
from colcast.client._errors import InputError, SchemaError
from colcast.client._settings import Target, known_target
from colcast.client.columns._batch import Batch, repeat_to
from colcast.client.columns._column import Column, stacked
from colcast.client.columns._columns import default_column
from colcast.client.columns._dtypes import FLOAT, INT64, STRING, Array, DType
from colcast.client.columns._encode import Tensor
from colcast.client.columns._examples import examples_of
from colcast.client.columns._schema import (
    COLUMNAR,
    COLUMNAR_LATE,
    EXPANDS,
    INDEXES,
    LENGTH_SUFFIX,
    ROW_TO,
    Feature,
    Kind,
    ModelSchema,
    Signature,
)
from colcast.client.columns._values import object_array


@dataclass(frozen=True)
class Plan:
    """The form chosen for requests to one model.

    Attributes:
        target: any target except auto.
        signature: the signature to call.
        features: the features that a row may hold; for `example`, those of the matching columnar
            signature, or none if that is unknown.
        dtypes: for `example`, the dtypes of features in the model's columnar signatures.
        domains: the features of each domain whose distinct rows may be sent with an index.
        fills: whether the server fills in the defaults of a late signature's absent user features.
    """

    target: Target
    signature: Signature
    features: dict[str, Feature]
    dtypes: dict[str, DType] = field(default_factory=dict)
    domains: dict[str, frozenset[str]] = field(default_factory=dict)
    fills: bool = False

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The names a row may hold: features, and the lengths of multi-valued ones."""
        lengths = (n + LENGTH_SUFFIX for n, f in self.features.items() if f.kind is Kind.MULTI)
        return frozenset(self.features).union(lengths)


@lru_cache(maxsize=64)
def plan_for(
    schema: ModelSchema,
    target: Target = "auto",
    signature: str | None = None,
    late: bool = True,
    indexed: bool = True,
) -> Plan:
    """Chooses the signature, and the target if that is "auto".

    Args:
        schema: the served model's schema.
        target: see `Target`.
        signature: overrides the signature that the target would call.
        late: whether "auto" may use the late signature, whose user features have one row.
        indexed: whether a domain's distinct rows may be sent with an index, if the server can.
    """
    target = known_target(target)
    if target == "auto":
        target = _auto(schema, signature, late)
    if target == "example":
        called = schema.signature(signature) if signature else schema.example_signature()
        if not called.takes_examples:
            raise SchemaError(f"signature {called.name!r} does not take serialized tf.Examples")
        columns = schema.columns_of(called)
        if columns is None:
            return Plan(target, called, {}, _agreed_dtypes(schema))
        return Plan(target, called, columns.features)
    if signature is not None:
        called = schema.signature(signature)
    elif target == "late":
        called = schema.signature(COLUMNAR_LATE)
    else:
        called = schema.columnar_signature() or schema.signature(COLUMNAR)
    indexed = indexed and INDEXES in schema.can and target in ("late", "columnar")
    domains = schema.domains_of(called) if indexed else {}
    fills = EXPANDS in schema.can
    return Plan(target, called, called.features, domains=domains, fills=fills)


def tensors_of(plan: Plan, batch: Batch) -> dict[str, Tensor]:
    """The inputs of the request for this batch, in the plan's form."""
    if plan.target == "example":
        examples = object_array(examples_of(batch.columns, plan.features, batch.rows))
        return {next(iter(plan.signature.inputs)): Tensor(STRING, examples)}
    plan = plan_of_columns(plan, batch)
    tensors = {**index_tensors(batch), **batch.keys}
    for name, value in batch.whole.items():
        tensors[name] = Tensor(plan.features[name].dtype, value)
    for name, feature in plan.features.items():
        if name in batch.encoded or name in batch.keys:
            continue
        column = batch.columns.get(name)
        if column is None and (feature.one_row or not batch.keys):
            column = _stand_in(plan, feature)
        if column is not None:
            tensors |= column_tensors(plan, feature, column, batch.rows)
    return tensors


def plan_of_columns(plan: Plan, batch: Batch) -> Plan:
    """The plan for a batch; with an index, its target is one for servers that repeat rows."""
    return replace(plan, target="columnar") if batch.indices else plan


def index_tensors(batch: Batch) -> dict[str, Tensor]:
    """The inputs that give each candidate's row of a domain."""
    indices = {ROW_TO + domain: Tensor(INT64, index) for domain, index in batch.indices.items()}
    return {name: tensor for name, tensor in indices.items() if name not in batch.encoded}


def column_tensors(plan: Plan, feature: Feature, column: Column, rows: int) -> dict[str, Tensor]:
    """The one or two inputs of a feature in a request of `rows` rows."""
    if feature.one_row:
        column = only_row(feature, column)
    elif plan.target in ("late", "repeated"):
        column = repeat_to(column, rows)
    fill = rows if plan.target == "stock" and not feature.one_row else 0
    tensors = {feature.name: _tensor(feature, column.values, fill)}
    if column.lengths is not None:
        length = Feature(feature.name + LENGTH_SUFFIX, INT64, Kind.SINGLE, ())
        tensors[length.name] = _tensor(length, column.lengths, fill)
    return tensors


def only_row(feature: Feature, column: Column) -> Column:
    """The only row of a late model's user feature; InputError if its rows differ."""
    if column.same_on_every_row():
        return column.take(slice(0, 1))
    first = column.take(slice(0, 1))
    other = next(
        row
        for row in range(1, column.rows)
        if not stacked([first, column.take(slice(row, row + 1))]).same_on_every_row()
    )
    here, there = column.values[[0, other]].tolist()
    raise InputError(
        "is a user feature of the late signature and must be the same on every row, "
        f"but it is {here!r} on row 0 and {there!r} here",
        feature=feature.name,
        row=other,
    )


def _agreed_dtypes(schema: ModelSchema) -> dict[str, DType]:
    """The dtypes of features, if all signatures that take the feature as a column agree."""
    found: dict[str, set[DType]] = {}
    for signature in [s for s in schema.signatures.values() if not s.takes_examples]:
        for name, feature in signature.features.items():
            found.setdefault(name, set()).add(feature.dtype)
    agreed = {name: dtypes.pop() for name, dtypes in found.items() if len(dtypes) == 1}
    return {name: dtype for name, dtype in agreed.items() if dtype in (FLOAT, INT64, STRING)}


def _auto(schema: ModelSchema, signature: str | None, may_be_late: bool) -> Target:
    late = schema.signatures.get(COLUMNAR_LATE) if may_be_late else None
    called = schema.signature(signature) if signature else late or schema.columnar_signature()
    if called is None or (called.takes_examples and not schema.takes_text(called)):
        return "example"
    if called is late or any(feature.one_row for feature in called.features.values()):
        return "late"
    return "columnar" if EXPANDS in schema.can else "stock"


def _stand_in(plan: Plan, feature: Feature) -> Column | None:
    """The column to send for an absent feature; None if the server fills in the default.

    Only servers that repeat rows do so; others would read a default as a single row.
    """
    fills = plan.target == "columnar" or (feature.one_row and plan.fills)
    if feature.kind is Kind.WHOLE or (fills and feature.name in plan.signature.filled):
        return None
    return default_column(feature)


def _tensor(feature: Feature, values: Array, fill: int) -> Tensor:
    """The tensor of a column. With `fill` > 0 (N), its single value is declared as N rows."""
    if fill <= len(values):
        return Tensor(feature.dtype, values)
    flat = values.reshape(1, -1)
    column = Column(flat.reshape(-1, 1))
    if flat.size and column.same_on_every_row():
        return Tensor(feature.dtype, flat[0, :1], (fill, *values.shape[1:]))
    return Tensor(feature.dtype, np.repeat(values, fill, axis=0))
