"""Requests to a model in every format, with the original model's answer to each."""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from colcast.client import encode_predict_request, wire

from ..models import Expected
from ..models._model import Row
from .exported import WITH_LENGTHS, Columns, Exported, Original, Outputs, examples_of

EXACT_FORMATS = ("examples", "examples of users", "columnar", "repeated", "columnar of users")
SIZES = (1, 1, 2, 2, 5, 5, 20, 20, 150, 1500)
USERS, ITEMS = 6, 200  # few, so that requests repeat them


@dataclass(frozen=True)
class Case:
    """One request; `message` is a PredictRequest, or a JSON body for the format "rest"."""

    format: str
    message: bytes
    signature: str
    expected: Outputs
    inputs: Columns = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether the answer must be bit-identical to the original's if the request runs alone."""
        return self.format in EXACT_FORMATS


@dataclass(frozen=True)
class Asked:
    """Users, items, each item's user, and each item's index in `items_of`."""

    users: Sequence[Row]
    items: Sequence[Row]
    row_to_user: Sequence[int]
    numbers: Sequence[int]

    @property
    def rows(self) -> list[Row]:
        """One row per candidate; includes its user's features."""
        pairs = zip(self.row_to_user, self.items, strict=True)
        return [self.users[user] | item for user, item in pairs]


def cases_of(
    exported: Exported,
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
    original: Original | None = None,
    item_key: str = "",
) -> list[Case]:
    """Requests of these sizes in every format; every second size also with several users.

    With `item_key`, also requests that name items by their index in `items_of`.
    """
    original = original or exported.original()
    return [
        case
        for asked in _asked(exported, sizes, seed)
        for case in _cases(exported, original, asked, item_key)
    ]


def with_wide_list(model: str, good: Case, values: int) -> bytes:
    """A columnar request whose first list has one value on the wire and `values` by its shape."""
    name = next(name for name in good.inputs if name.endswith("/length")).removesuffix("/length")
    inputs = {other: value for other, value in good.inputs.items() if other != name}
    shape = b"".join(wire.field(2, b"\x08" + wire.varint(size)) for size in (1, values))
    tensor = b"\x08\x09" + wire.field(2, shape) + wire.field(10, b"\x01")  # DT_INT64, int64_val
    head = encode_predict_request(model, "columnar", inputs)
    return head + wire.field(2, wire.field(1, name.encode()) + wire.field(2, tensor))


def items_of(exported: Exported, seed: int = 0) -> list[Row]:
    """All items that requests may contain."""
    return _drawn(exported, np.random.default_rng(seed))[1]


def _asked(exported: Exported, sizes: Sequence[int], seed: int) -> Iterator[Asked]:
    random = np.random.default_rng(seed)
    users, items = _drawn(exported, random)
    for number, size in enumerate(sizes):
        numbers = random.integers(0, ITEMS, size).tolist()
        chosen = [items[i] for i in numbers]
        yield Asked([users[random.integers(USERS)]], chosen, [0] * size, numbers)
        together = min(3, size)
        # Every user has a candidate; otherwise an unused user's list could determine the padding.
        if number % 2 and together > 1:
            some = [users[i] for i in random.integers(0, USERS, together)]
            more = random.integers(0, together, size - together).tolist()
            yield Asked(some, chosen, [*range(together), *more], numbers)


def _drawn(exported: Exported, random: np.random.Generator) -> tuple[list[Row], list[Row]]:
    """Randomly drawn users and items."""
    names = exported.user_features()
    drawn = [exported.model.draw(random) for _ in range(ITEMS)]
    users = [{n: v for n, v in row.items() if n in names} for row in drawn[:USERS]]
    return users, [{n: v for n, v in row.items() if n not in names} for row in drawn]


def _cases(exported: Exported, original: Original, asked: Asked, item_key: str) -> Iterator[Case]:
    """The request in every format; with several users, it has an index of each row's user."""
    whole = original.score(asked.rows)
    by_user = _by_user(exported, original, asked, whole)
    names = exported.user_features()
    of_items = exported.columns(asked.items, set(exported.record["features"]) - names)
    of_users = exported.columns(asked.users, names)
    once = of_users | of_items
    several = " of users" if len(asked.users) > 1 else ""
    if several:
        of_users["row_to_user"] = once["row_to_user"] = np.array(asked.row_to_user, np.int64)

    def case(kind: str, signature: str, inputs: Columns, expected: Outputs) -> Case:
        message = encode_predict_request(exported.model.name, signature, inputs)
        return Case(kind, message, signature, expected, inputs)

    if exported.model.parses:
        examples = {exported.record["source_input"]: examples_of(asked.rows)}
        yield case(f"examples{several}", exported.model.signature, examples, whole)
    yield case(f"columnar{several}", "columnar", once, whole)
    yield case(f"late{several}", "columnar_late", once, by_user)
    if item_key:
        by_key = of_users | {item_key: np.array(asked.numbers, np.int64)}
        yield case(f"by key{several}", "columnar_late", by_key, by_user)
    if not several:
        yield case("repeated", "columnar", exported.columns(asked.rows), whole)
    if not several and len(asked.items) <= 20:
        yield Case("rest", _json("columnar_late", once), "columnar_late", whole)


def _by_user(exported: Exported, original: Original, asked: Asked, whole: Outputs) -> Outputs:
    """The expected answers, from one request per user.

    Lists without lengths are as wide as they were sent for all users together. If an output has no
    rows, all users are scored at once, because the request must be refused.
    """
    features = exported.record["features"].items()
    has_lengths = any(feature["kind"] in WITH_LENGTHS for _, feature in features)
    alone = exported.model.expected in (Expected.INDEPENDENT, Expected.REFUSED)
    as_sent = exported.model.expected is Expected.LENGTH and not has_lengths
    if len(asked.users) == 1 or alone or as_sent:
        return whole
    dense = {name for name, f in features if f["kind"] not in ("fixed_len", *WITH_LENGTHS)}
    sent = exported.columns(asked.rows, dense)
    rows = [
        row | {name: sent[name][number].ravel().tolist() for name in dense}
        for number, row in enumerate(asked.rows)
    ]
    row_to_user = np.array(asked.row_to_user)
    joined: Outputs = {}
    for user in range(len(asked.users)):
        places = np.flatnonzero(row_to_user == user)
        if not len(places):
            continue
        for name, values in original.score([rows[i] for i in places]).items():
            if np.shape(values)[:1] != (len(places),):
                return whole
            empty = np.zeros((len(rows), *values.shape[1:]), values.dtype)
            joined.setdefault(name, empty)[places] = values
    return joined


def _json(signature: str, columns: Columns) -> bytes:
    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(one) for one in value]
        return {"b64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value

    inputs = {name: plain(column.tolist()) for name, column in columns.items()}
    return json.dumps({"signature_name": signature, "inputs": inputs}).encode()
