"""Packs several users, each with their own candidates, into as few requests as possible."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from colcast.client._errors import InputError
from colcast.client._settings import ClientSettings
from colcast.client.columns._batch import Batch, repeat_to, with_user
from colcast.client.columns._column import stacked
from colcast.client.columns._columns import default_column
from colcast.client.columns._encode import Tensor
from colcast.client.columns._inputs import table_of_user
from colcast.client.columns._schema import (
    COLUMNAR_LATE,
    COLUMNAR_PAIR,
    TAKES_USERS,
    USER,
    Kind,
    ModelSchema,
)
from colcast.client.request._affinity import hash_of_user
from colcast.client.request._distinct import send_distinct_rows
from colcast.client.request._item_keys import by_key
from colcast.client.request._request import (
    Built,
    RequestOptions,
    built_of,
    items_for,
    plan_of,
    user_varies,
)
from colcast.client.request._targets import Plan, only_row, tensors_of

MANY_IN_FLIGHT = 8
"""The number of multi-user requests in flight at a time, enough to keep a server busy."""


@dataclass(frozen=True, slots=True)
class Group:
    """Users who share a request.

    Attributes:
        places: their positions among all pairs.
        pairs: (user, items) for each.
        options: the request options of each.
        plan: the plan of the joint request; None if each user gets a separate request.
        batches: the columns of each, if there is a plan.
        schema: the schema for which the request was planned.
        affinity: the first user's affinity, if there is one.
    """

    places: Sequence[int]
    pairs: Sequence[tuple[Any, Any]]
    options: Sequence[RequestOptions]
    schema: ModelSchema
    plan: Plan | None = None
    batches: Sequence[Batch] = ()
    affinity: str = ""


def read_pairs(pairs: Sequence[Sequence[Any]], settings: ClientSettings) -> list[tuple[Any, Any]]:
    """Converts (user, items) or (user, items, item_keys) to (user, items) for each user."""
    read = []
    for place, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) not in (2, 3):
            came = type(pair).__name__
            raise InputError(f"pairs[{place}]: expected a pair of user and items, got {came}")
        user, items, item_keys = (*pair, None)[:3]
        read.append((user, by_key(items, item_keys, settings)))
    return read


def grouped(
    schema: ModelSchema,
    pairs: Sequence[tuple[Any, Any]],
    options: Sequence[RequestOptions],
    home: Callable[[str], str] = lambda _: "",
) -> list[Group]:
    """Groups pairs of user and items into requests of at most 4,096 candidates.

    Larger requests gain nothing. The late signature distinguishes users' columns from items'.
    Without one, with targets that repeat rows, and with servers that do not declare that they take
    several users, each user gets a separate request. If the model may see padding, a group's lists
    have the same padded width, so no user changes another's score.

    Args:
        schema: the served model's schema.
        pairs: (user, items) for each.
        options: the request options of each; they differ only in `affinity`.
        home: affinity -> the server that caches the user's state, the same for a whole group.
    """
    if not pairs:
        return []
    asked = options[0]
    plan = plan_of(schema, asked)
    alone = [Group([i], [pair], [options[i]], schema) for i, pair in enumerate(pairs)]
    joint = _for_several_users(schema, plan)
    if joint is None:
        return alone
    batches = _batches(plan_of(schema, asked, indexed=False), pairs, asked)
    if asked.target != "late" and any(user_varies(joint, batch) for batch in batches):
        return alone
    whose = [
        each.affinity or hash_of_user(schema, batch, each.settings)
        for each, batch in zip(options, batches, strict=True)
    ]

    def group(places: Sequence[int]) -> Group:
        chosen = [pairs[i] for i in places], [options[i] for i in places]
        own = [batches[i] for i in places]
        return Group(places, *chosen, schema, joint, own, whose[places[0]])

    homes = [home(affinity) for affinity in whose]
    return [
        group(places) if len(places) > 1 else alone[places[0]]
        for places in _joinable(schema, joint, batches, homes)
    ]


def in_order(groups: Sequence[Group], found: Sequence[Sequence[Any]]) -> list[Any]:
    """The results of all groups, in the order of the pairs."""
    placed = {
        place: one
        for group, ones in zip(groups, found, strict=True)
        for place, one in zip(group.places, ones, strict=True)
    }
    return [placed[place] for place in range(len(placed))]


def build_joined(plan: Plan, group: Group) -> Built:
    """The PredictRequest for several users, with `row_to_user` assigning candidates to them.

    Args:
        plan: a plan whose one-row features are the users'.
        group: the users, with their columns for that plan.
    """
    batch = send_distinct_rows(plan, _joined(plan, group.batches))
    features = {name: replace(feature, one_row=False) for name, feature in plan.features.items()}
    tensors = tensors_of(replace(plan, features=features), batch)
    return replace(built_of(plan, batch, tensors, group.options[0]), affinity=group.affinity)


_ROWS_TOGETHER = 4096


def _batches(plan: Plan, pairs: Sequence[tuple[Any, Any]], options: RequestOptions) -> list[Batch]:
    """Each pair's columns; candidates shared by several users are converted once."""
    converted: dict[int, Batch] = {}
    batches = []
    for user, items in pairs:
        if id(items) not in converted:
            converted[id(items)] = items_for(plan, items, options)
        given = None if user is None else table_of_user(user, plan.inputs)
        ready = converted[id(items)]
        batches.append(with_user(plan.features, given, ready, options.settings.policies))
    return batches


def _joinable(
    schema: ModelSchema, joint: Plan, batches: Sequence[Batch], homes: Sequence[str]
) -> list[list[int]]:
    """Groups batches that may share a request; returns their positions."""
    seen = [Kind.SEQUENCE]
    # With stages, the export has proved that padding has no effect.
    if COLUMNAR_PAIR not in schema.signatures:
        seen.append(Kind.MULTI)
    lists = [feature for feature in joint.features.values() if feature.kind in seen]
    groups: dict[Any, list[list[int]]] = {}
    for place, batch in enumerate(batches):
        columns = [batch.columns.get(one.name) or default_column(one) for one in lists]
        widths = tuple(column.longest for column in columns if column is not None)
        # By key, requests must lack the same features, because the item table fills these in.
        named = frozenset(batch.columns) if batch.keys else None
        alike = groups.setdefault((homes[place], widths, frozenset(batch.keys), named), [[]])
        if sum(batches[i].rows for i in alike[-1]) + batch.rows > _ROWS_TOGETHER and alike[-1]:
            alike.append([])
        alike[-1].append(place)
    return [places for alike in groups.values() for places in alike]


def _for_several_users(schema: ModelSchema, plan: Plan) -> Plan | None:
    """The plan with the users' features marked; None if a request cannot hold several users."""
    if TAKES_USERS not in schema.can or plan.target not in ("late", "columnar"):
        return None
    if not schema.domains_of(plan.signature):
        return None
    return replace(plan, features=schema.signature(COLUMNAR_LATE).features)


def _joined(plan: Plan, batches: Sequence[Batch]) -> Batch:
    """The columns of a multi-user request: U rows of the users' columns, and all candidates.

    Equal users are not merged, because a candidate's score may depend on the user's other
    candidates.
    """
    rows = [batch.rows for batch in batches]
    columns = {}
    for name, feature in plan.features.items():
        if batches[0].keys and not feature.one_row and name not in batches[0].columns:
            continue
        found = [batch.columns.get(name) or default_column(feature) for batch in batches]
        own = [column for column in found if column is not None]
        if feature.one_row:
            columns[name] = stacked([only_row(feature, column) for column in own])
        else:
            columns[name] = stacked([repeat_to(c, n) for c, n in zip(own, rows, strict=True)])
    whose = np.repeat(np.arange(len(batches)), rows)
    keys = {
        name: Tensor(one.dtype, np.concatenate([batch.keys[name].values for batch in batches]))
        for name, one in batches[0].keys.items()
    }
    return Batch(sum(rows), columns, {}, indices={USER: whose}, keys=keys)
