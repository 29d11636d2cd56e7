"""Inputs + schema -> one request; pure, so that it can be made far from any server."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from colcast.client._batch import Batch, batch_of, send_equal_rows_once, with_all_rows_in_one
from colcast.client._dtypes import STRING
from colcast.client._encode import Tensor, encode_predict_request
from colcast.client._errors import InputError
from colcast.client._infer import as_lists, infer_features
from colcast.client._inputs import Rows, table_of_items, table_of_user
from colcast.client._inputs_examples import Examples, tables_of_examples
from colcast.client._schema import ModelSchema
from colcast.client._settings import ClientSettings, Target
from colcast.client._targets import Plan, plan_for, tensors_of
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
            plan = plan_for(schema, "auto", settings.signature, options.server_expands, False)
        tensors = tensors_of(plan, batch)
    message = encode_predict_request(
        settings.model,
        plan.signature.name,
        tensors,
        version=settings.version,
        version_label=settings.version_label,
        output_filter=options.output_filter,
    )
    needs_expansion = plan.target == "columnar" and batch.rows > 1 and len(_sizes(tensors)) > 1
    return Built(
        message, plan.target, plan.signature.name, batch.rows, batch.unused, needs_expansion
    )


# Implementation details follow.


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
    items = table_of_items(inputs.items, wanted)
    if inferred:
        items = as_lists(items, plan.dtypes)
        features = infer_features(items, plan.dtypes)
        if given is not None:
            given = as_lists(given, plan.dtypes)
            features |= infer_features(given, plan.dtypes)
        plan = Plan(plan.target, plan.signature, features)
    return plan, batch_of(plan.features, given, items, options.settings.policies)


def _sizes(tensors: Mapping[str, Tensor]) -> set[int]:
    """The first dimensions."""
    return {len(tensor.values) for tensor in tensors.values() if tensor.values.ndim}


def _user_varies(plan: Plan, batch: Batch) -> bool:
    return any(
        feature.one_row and name in batch.columns and not batch.columns[name].same_on_every_row()
        for name, feature in plan.features.items()
    )
