"""Inputs + schema -> one request; pure, so that it can be made far from any server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from colcast.client._batch import (
    Batch,
    batch_of,
    send_equal_rows_once,
    with_all_rows_in_one,
    with_user,
)
from colcast.client._columns import default_column, no_rows
from colcast.client._dtypes import STRING
from colcast.client._encode import Tensor, encode_predict_request
from colcast.client._errors import InputError
from colcast.client._infer import as_lists, infer_features
from colcast.client._inputs import Rows, table_of_items, table_of_user
from colcast.client._inputs_examples import Examples, tables_of_examples
from colcast.client._prepared import PreparedItems
from colcast.client._schema import COLUMNAR_LATE, COLUMNAR_PAIR, Kind, ModelSchema
from colcast.client._settings import ClientSettings, Target
from colcast.client._targets import Plan, joined_tensors, plan_for, tensors_of
from colcast.client._values import object_array


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """How to ask this time.

    Attributes:
        settings: the client's.
        target: see `Target`.
        output_filter: the outputs wanted; empty is all.
        late: whether "auto" may use the late signature.
        server_expands: whether "auto" may leave the repetition to the server.
    """

    settings: ClientSettings
    target: Target = "auto"
    output_filter: tuple[str, ...] = ()
    late: bool = True
    server_expands: bool = True


@dataclass(frozen=True, slots=True)
class Built:
    """A request ready to send.

    Attributes:
        message: the PredictRequest's bytes.
        target: how it is written; never "auto".
        signature: the signature it calls.
        rows: N, the number of candidates.
        unused: how many columns were left out because the signature does not use them.
        needs_expansion: only a server that repeats rows can answer it.
    """

    message: bytes
    target: Target
    signature: str
    rows: int
    unused: int = 0
    needs_expansion: bool = False


def build_request(schema: ModelSchema, inputs: Rows | Examples, options: RequestOptions) -> Built:
    """The PredictRequest for one user and N candidates.

    Raises:
        InputError: the inputs do not fit the signature.
        SchemaError: the model has no signature for the target.
    """
    settings = options.settings
    plan = plan_for(
        schema, options.target, settings.signature, options.server_expands, options.late
    )
    if plan.target == "example" and isinstance(inputs, Examples):
        batch = Batch(len(inputs.examples), {}, {})
        tensors = _examples_as_they_are(plan, inputs)
    else:
        plan, batch = _batch(plan, inputs, options)
        if settings.dedupe == "auto":
            batch = send_equal_rows_once(batch)
        batch = with_all_rows_in_one(batch, plan.features)
        if options.target == "auto" and plan.target == "late" and _user_varies(plan, batch):
            return build_request(schema, inputs, replace(options, late=False))
        tensors = tensors_of(plan, batch)
    built = _built(plan, batch.rows, tensors, options)
    sizes = {len(tensor.values) for tensor in tensors.values() if tensor.values.ndim}
    sizes |= {batch.columns[name].rows for name in batch.encoded}
    return replace(
        built,
        message=b"".join((built.message, *batch.encoded.values())),
        unused=len(batch.unused),
        needs_expansion=plan.target == "columnar" and batch.rows > 1 and len(sizes) > 1,
    )


def prepare_items(schema: ModelSchema, items: PreparedItems, options: RequestOptions) -> None:
    """Converts and encodes the items as `build_request` will want them.

    Raises:
        InputError: the items do not fit the signature.
        SchemaError: the model has no signature for the target.
    """
    settings = options.settings
    plan = plan_for(
        schema, options.target, settings.signature, options.server_expands, options.late
    )
    if plan.target == "example":
        table_of_items(items.items, None)
        return
    batch = items.batch(plan, settings)
    if options.target == "auto" and plan.target == "late" and _user_varies(plan, batch):
        prepare_items(schema, items, replace(options, late=False))


MANY_IN_FLIGHT = 8
"""How many requests for several users are under way at a time: enough to keep a server busy."""


@dataclass(frozen=True, slots=True)
class Group:
    """Users that are asked for together.

    Attributes:
        places: where they stand among all.
        pairs: (user, items) for each.
        options: how to ask.
        plan: how one request asks for all of them; None: each is asked for alone.
        batches: the columns of each, where there is a plan.
    """

    places: Sequence[int]
    pairs: Sequence[tuple[Any, Any]]
    options: RequestOptions
    plan: Plan | None = None
    batches: Sequence[Batch] = ()


def grouped(
    schema: ModelSchema,
    pairs: Sequence[tuple[Any, Any]],
    options: RequestOptions,
    together: bool = True,
) -> list[Group]:
    """Pairs of user and items in groups of at most 4,096 candidates: larger requests gain nothing.

    The late signature tells the users' columns from the items', so without one, and with targets
    that repeat rows, each user is asked for alone. A group's lists have the same padded width
    where the model may see what pads them, so that company changes no score.

    Args:
        schema: the served model's.
        pairs: (user, items) for each.
        options: how to ask.
        together: whether the server may take several users in one request.

    Raises:
        InputError: a pair's data does not fit the signature.
        SchemaError: the model has no signature for the target.
    """
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"expected pairs of user and items, got {type(pair).__name__}")
    settings = options.settings
    plan = plan_for(
        schema, options.target, settings.signature, options.server_expands, options.late
    )
    alone = [Group([place], [pair], options) for place, pair in enumerate(pairs)]
    joint = _for_several_users(schema, plan) if together else None
    if joint is None:
        return alone
    batches = [_batch(plan, Rows(items, user), options)[1] for user, items in pairs]
    if options.target != "late" and any(_user_varies(joint, batch) for batch in batches):
        return alone
    return [
        Group(places, [pairs[i] for i in places], options, joint, [batches[i] for i in places])
        if len(places) > 1
        else alone[places[0]]
        for places in _joinable(schema, joint, batches)
    ]


def in_order(groups: Sequence[Group], found: Sequence[Sequence[Any]]) -> list[Any]:
    """What was found for each group's users, in the order of all users."""
    placed = {
        place: one
        for group, ones in zip(groups, found, strict=True)
        for place, one in zip(group.places, ones, strict=True)
    }
    return [placed[place] for place in range(len(placed))]


def build_prefetch(schema: ModelSchema, user: Any, options: RequestOptions) -> Built:
    """The PredictRequest with one user and no candidate, for `columnar_late`.

    Raises:
        InputError: the user's features do not fit the signature.
        SchemaError: the model has no late signature.
    """
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
    tensors = tensors_of(plan, replace(batch, columns=columns))
    return _built(plan, 0, tensors, options)


def build_joined(plan: Plan, batches: Sequence[Batch], options: RequestOptions) -> Built:
    """The PredictRequest for several users, each with candidates: `row_to_user` says whose.

    Args:
        plan: whose features of one row are the users'.
        batches: one per user, of that plan.
        options: the outputs wanted.

    Raises:
        InputError: a user feature that differs between the rows of one user.
    """
    tensors = joined_tensors(plan, batches)
    return _built(plan, sum(batch.rows for batch in batches), tensors, options)


# Implementation details follow.

_ROWS_TOGETHER = 4096


def _built(plan: Plan, rows: int, tensors: Mapping[str, Tensor], options: RequestOptions) -> Built:
    """The request of these inputs."""
    settings = options.settings
    message = encode_predict_request(
        settings.model,
        plan.signature.name,
        tensors,
        version=settings.version,
        version_label=settings.version_label,
        output_filter=options.output_filter,
    )
    return Built(message, plan.target, plan.signature.name, rows)


def _examples_as_they_are(plan: Plan, inputs: Examples) -> dict[str, Tensor]:
    if not inputs.examples:
        raise InputError("no examples: there is nothing to rank")
    values = object_array(inputs.examples)
    return {next(iter(plan.signature.inputs)): Tensor(STRING, values)}


def _batch(plan: Plan, inputs: Rows | Examples, options: RequestOptions) -> tuple[Plan, Batch]:
    """The columns, and the plan with the features told from the data if it had none."""
    inferred = plan.target == "example" and not plan.features
    if isinstance(inputs, Examples):
        user, items = tables_of_examples(inputs.examples, plan.features)
        policies = options.settings.policies
        if policies.unused == "suggest":  # the parse op would not look at them either
            policies = replace(policies, unused="drop")
        return plan, batch_of(plan.features, user, items, policies)
    wanted = None if inferred else plan.inputs
    given = None if inputs.user is None else table_of_user(inputs.user, wanted)
    prepared = isinstance(inputs.items, PreparedItems)
    if prepared and plan.target != "example":
        ready = inputs.items.batch(plan, options.settings)
        return plan, with_user(plan.features, given, ready, options.settings.policies)
    items = table_of_items(inputs.items.items if prepared else inputs.items, wanted)
    if inferred:
        items = as_lists(items, plan.dtypes)
        features = infer_features(items, plan.dtypes)
        if given is not None:
            given = as_lists(given, plan.dtypes)
            features |= infer_features(given, plan.dtypes)
        plan = Plan(plan.target, plan.signature, features)
    return plan, batch_of(plan.features, given, items, options.settings.policies)


def _joinable(schema: ModelSchema, joint: Plan, batches: Sequence[Batch]) -> list[list[int]]:
    """The batches that may share a request, by their places."""
    seen = [Kind.SEQUENCE]
    if COLUMNAR_PAIR not in schema.signatures:  # else the export has proved that lists are not
        seen.append(Kind.MULTI)
    lists = [feature for feature in joint.features.values() if feature.kind in seen]
    groups: dict[Any, list[list[int]]] = {}
    for place, batch in enumerate(batches):
        columns = [batch.columns.get(one.name) or default_column(one) for one in lists]
        widths = tuple(column.longest for column in columns if column is not None)
        alike = groups.setdefault(widths, [[]])
        if sum(batches[i].rows for i in alike[-1]) + batch.rows > _ROWS_TOGETHER and alike[-1]:
            alike.append([])
        alike[-1].append(place)
    return [places for alike in groups.values() for places in alike]


def _for_several_users(schema: ModelSchema, plan: Plan) -> Plan | None:
    """The plan with the users' features marked; None if no one request can ask for several."""
    late = schema.signatures.get(COLUMNAR_LATE)
    if plan.target not in ("late", "columnar") or late is None:
        return None
    if late.features.keys() != plan.features.keys():
        return None
    if any(feature.kind is Kind.WHOLE for feature in late.features.values()):
        return None
    return replace(plan, features=late.features)


def _user_varies(plan: Plan, batch: Batch) -> bool:
    return any(
        feature.one_row and name in batch.columns and not batch.columns[name].same_on_every_row()
        for name, feature in plan.features.items()
    )
