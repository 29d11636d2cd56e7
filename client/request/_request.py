"""Builds one request from inputs and schema, without calling a server."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from colcast.client._errors import InputError
from colcast.client._settings import ClientSettings, Target
from colcast.client.columns._batch import (
    Batch,
    item_batch,
    send_equal_rows_once,
    with_all_rows_in_one,
    with_user,
)
from colcast.client.columns._columns import no_rows
from colcast.client.columns._dtypes import STRING
from colcast.client.columns._encode import Tensor, encode_predict_request
from colcast.client.columns._examples import as_lists, infer_features
from colcast.client.columns._inputs import Rows, Table, table_of_items, table_of_user
from colcast.client.columns._inputs_examples import Examples, tables_of_examples
from colcast.client.columns._schema import Kind, ModelSchema
from colcast.client.columns._values import object_array
from colcast.client.request._affinity import hash_of_user
from colcast.client.request._distinct import send_distinct_rows
from colcast.client.request._item_keys import ItemsByKey, batch_by_key
from colcast.client.request._prepared import PreparedItems
from colcast.client.request._targets import (
    Plan,
    plan_for,
    tensors_of,
)


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The options of one request.

    Attributes:
        settings: the client's settings.
        target: see `Target`.
        output_filter: the outputs to return; empty for all.
        late: whether "auto" may use the late signature.
        affinity: a hash that identifies the user, if the caller gave a key.
    """

    settings: ClientSettings
    target: Target = "auto"
    output_filter: tuple[str, ...] = ()
    late: bool = True
    affinity: str = ""


@dataclass(frozen=True, slots=True)
class Built:
    """A request ready to send.

    Attributes:
        message: the PredictRequest's bytes.
        target: the request's form, see `Target`; "auto" is already resolved.
        signature: the signature it calls.
        rows: N, the number of candidates.
        unused: number of columns left out because the signature does not use them.
        distinct: domain -> number of rows sent, for domains with an index.
        affinity: a hash that identifies the user; empty if unknown.
    """

    message: bytes
    target: Target
    signature: str
    rows: int
    unused: int = 0
    distinct: Mapping[str, int] = field(default_factory=dict)
    affinity: str = ""


def build_request(schema: ModelSchema, inputs: Rows | Examples, options: RequestOptions) -> Built:
    """The PredictRequest for one user and N candidates."""
    settings = options.settings
    plan = _plan(schema, inputs, options)
    if plan.target == "example" and isinstance(inputs, Examples):
        batch = Batch(len(inputs.examples), {}, {})
        tensors = _examples_as_they_are(plan, inputs)
    else:
        plan, batch = batch_for(plan, inputs, options)
        if settings.dedupe == "auto":
            batch = send_equal_rows_once(batch)
        if options.target == "auto" and plan.target == "late" and user_varies(plan, batch):
            return build_request(schema, inputs, replace(options, late=False))
        batch = with_all_rows_in_one(send_distinct_rows(plan, batch), plan.features)
        tensors = tensors_of(plan, batch)
    built = built_of(plan, batch, tensors, options)
    return replace(
        built,
        message=b"".join((built.message, *batch.encoded.values())),
        affinity=options.affinity or hash_of_user(schema, batch, settings),
    )


def prepare_items(schema: ModelSchema, items: PreparedItems, options: RequestOptions) -> None:
    """Converts and encodes the items in the form that `build_request` will need."""
    settings = options.settings
    plan = _plan(schema, Rows(items), options)
    if plan.target == "example":
        table_of_items(items.items, None)
        return
    batch = items.batch(plan, settings)
    if options.target == "auto" and plan.target == "late" and user_varies(plan, batch):
        prepare_items(schema, items, replace(options, late=False))


def build_prefetch(schema: ModelSchema, user: Any, options: RequestOptions) -> Built:
    """The PredictRequest with one user and no candidates, for `columnar_late`."""
    plan = plan_for(schema, "late", options.settings.signature)
    policies = options.settings.policies
    given = {name: feature for name, feature in plan.features.items() if feature.one_row}
    table = table_of_user(user, plan.inputs)
    features = given | {name: plan.features[name] for name in plan.features.keys() & table.columns}
    batch = with_user(features, table, Batch(0, {}, {}), policies)
    columns = {name: batch.columns[name] for name in batch.columns.keys() & given.keys()}
    for name, feature in plan.features.items():
        if name not in given and feature.kind is not Kind.WHOLE:
            columns[name] = no_rows(feature)
    batch = replace(batch, columns=columns)
    built = built_of(plan, batch, tensors_of(plan, batch), options)
    return replace(
        built, affinity=options.affinity or hash_of_user(schema, batch, options.settings)
    )


def batch_for(plan: Plan, inputs: Rows | Examples, options: RequestOptions) -> tuple[Plan, Batch]:
    """The columns and the plan, with features inferred from the data if the plan has none."""
    inferred = plan.target == "example" and not plan.features
    policies, ready = options.settings.policies, None
    given: Table | None
    if isinstance(inputs, Examples):
        given, items = tables_of_examples(inputs.examples, plan.features)
    else:
        wanted = None if inferred else plan.inputs
        given = None if inputs.user is None else table_of_user(inputs.user, wanted)
        prepared = isinstance(inputs.items, PreparedItems)
        if isinstance(inputs.items, ItemsByKey) or (prepared and plan.target != "example"):
            ready = items_for(plan, inputs.items, options)
        else:
            items = table_of_items(inputs.items.items if prepared else inputs.items, wanted)
    if inferred:
        items = as_lists(items, plan.dtypes)
        features = infer_features(items, plan.dtypes)
        if given is not None:
            given = as_lists(given, plan.dtypes)
            features |= infer_features(given, plan.dtypes)
        plan = Plan(plan.target, plan.signature, features)
    once = options.settings.dedupe == "auto"
    ready = ready or item_batch(plan.features, items, policies, once=once)
    return plan, with_user(plan.features, given, ready, policies)


def items_for(plan: Plan, items: Any, options: RequestOptions) -> Batch:
    """The item columns only; the plan must have features."""
    if isinstance(items, PreparedItems):
        return items.batch(plan, options.settings)
    if isinstance(items, ItemsByKey):
        return batch_by_key(plan, items, options.settings.policies)
    return item_batch(plan.features, table_of_items(items, plan.inputs), options.settings.policies)


def user_varies(plan: Plan, batch: Batch) -> bool:
    """Whether a user feature of the late signature differs between rows."""
    return any(
        feature.one_row and name in batch.columns and not batch.columns[name].same_on_every_row()
        for name, feature in plan.features.items()
    )


def plan_of(schema: ModelSchema, options: RequestOptions, *, indexed: bool = True) -> Plan:
    """The plan for any inputs; `indexed` says whether distinct rows may be sent with an index."""
    settings = options.settings
    return plan_for(
        schema,
        options.target,
        settings.signature,
        options.late,
        indexed and settings.dedupe == "auto",
    )


def built_of(
    plan: Plan, batch: Batch, tensors: Mapping[str, Tensor], options: RequestOptions
) -> Built:
    """Encodes a batch's request, with these tensors as inputs."""
    settings = options.settings
    message = encode_predict_request(
        settings.model,
        plan.signature.name,
        tensors,
        version=settings.version,
        version_label=settings.version_label,
        output_filter=options.output_filter,
    )
    sent = {d: int(index.max()) + 1 for d, index in batch.indices.items()}
    return Built(
        message,
        plan.target,
        plan.signature.name,
        batch.rows,
        unused=len(batch.unused),
        distinct=sent,
    )


def _plan(schema: ModelSchema, inputs: Rows | Examples, options: RequestOptions) -> Plan:
    """The plan for these inputs; only tf.Examples show that a column of strings takes them."""
    plan = plan_of(schema, options)
    if isinstance(inputs, Examples):
        if options.target == "auto" and plan.signature.takes_examples:
            return plan_for(schema, "example", plan.signature.name)
    elif plan.target == "example" and isinstance(inputs.items, ItemsByKey):
        message = "item_keys need a signature that takes columns; this one takes tf.Examples"
        raise InputError(message)
    return plan


def _examples_as_they_are(plan: Plan, inputs: Examples) -> dict[str, Tensor]:
    if not inputs.examples:
        raise InputError("no examples: there is nothing to rank")
    values = object_array(inputs.examples)
    return {next(iter(plan.signature.inputs)): Tensor(STRING, values)}
