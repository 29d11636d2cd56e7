"""Converts serialized tf.Examples to two tables: features equal on every row, and all others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from colcast.client._errors import DecodeError, InputError
from colcast.client.columns._dtypes import Array
from colcast.client.columns._inputs import Table
from colcast.client.columns._schema import Feature, Kind
from colcast.client.columns._values import NOT_GIVEN, object_array
from colcast.client.messages import parse
from colcast.client.wire import field, read_varints


@dataclass(frozen=True, slots=True)
class Examples:
    """Candidates as serialized tf.Examples."""

    examples: Sequence[bytes]


def examples_of_any(examples: Any) -> Examples:
    """A list of tf.Examples, or one ExampleListWithContext, as the input of a request.

    Raises:
        InputError: the value is neither.
    """
    descriptor = getattr(examples, "DESCRIPTOR", None)
    if descriptor is not None:
        if descriptor.name != "ExampleListWithContext":
            raise InputError(f"expected a list of tf.Examples, got one {descriptor.name}")
        context, examples = split_context(examples)
        return Examples(merged(context, examples))
    return Examples(serialized(examples))


def serialized(examples: Sequence[Any]) -> list[bytes]:
    """Serializes tf.train.Example protos; bytes stay as they are.

    Raises:
        InputError: not a sequence, or an entry is neither a proto nor bytes; names its row.
    """
    if isinstance(examples, str | bytes) or not isinstance(examples, Sequence | np.ndarray):
        raise InputError(
            f"expected a list of tf.Examples or their bytes, got {type(examples).__name__}"
        )
    return [_serialized(row, example) for row, example in enumerate(examples)]


def split_context(elwc: Any) -> tuple[bytes, list[bytes]]:
    """Splits an ExampleListWithContext, or its bytes, into serialized context and examples.

    Raises:
        InputError: it is not such a message.
    """
    try:
        found = parse("ExampleListWithContext", _serialized(None, elwc))
    except DecodeError as error:
        raise InputError(f"not an ExampleListWithContext: {error}") from None
    return found.context, list(found.examples)


def merged(context: bytes, examples: Sequence[bytes]) -> list[bytes]:
    """Each example with the context's features added; the example's own features win.

    Concatenated serialized messages are parsed as their merge.
    """
    return [context + example for example in examples]


def split_shared(examples: Sequence[bytes]) -> tuple[bytes, list[bytes]]:
    """The reverse of `merged`: (context, examples without the context's features).

    The context holds the features that are equal, byte for byte, in every example.

    Raises:
        InputError: the bytes are not a tf.Example.
    """
    shared, varying = _split_checked([list(row.features.feature) for row in _parse(examples)])
    context = [_entry(key, value) for key, value in shared.items() if key not in varying]
    items: list[list[bytes]] = [[] for _ in examples]
    for key, values in varying.items():
        for row, value in enumerate(values):
            if value is not None:
                items[row].append(_entry(key, value))
    return field(1, b"".join(context)), [field(1, b"".join(entries)) for entries in items]


def tables_of_examples(
    examples: Sequence[bytes], features: Mapping[str, Feature]
) -> tuple[Table, Table]:
    """A table of the features that all examples share (one row), and one of the others (N rows).

    Features are compared as bytes, so shared ones are parsed only once.

    Args:
        examples: N serialized tf.Examples.
        features: the signature's features; others are skipped.

    Raises:
        InputError: the bytes are not a tf.Example, or the number or type of values does not fit the
            feature.
    """
    shared, varying = _split_checked([list(row.features.feature) for row in _parse(examples)])
    wanted = {name.encode(): name for name in features}
    user = {
        wanted[key]: _entries(features[wanted[key]], [value])
        for key, value in shared.items()
        if key in wanted and key not in varying
    }
    items = {
        wanted[key]: _entries(features[wanted[key]], values)
        for key, values in varying.items()
        if key in wanted
    }
    keys = (shared.keys() | varying.keys()) - wanted.keys()
    unused = frozenset(key.decode(errors="replace") for key in keys)
    return Table(1, user), Table(len(examples), items, unused)


Value = bytes | None  # a serialized Feature; None if the row has none


def _serialized(row: int | None, example: Any) -> bytes:
    if isinstance(example, bytes | bytearray | memoryview):
        return bytes(example)
    if not hasattr(example, "SerializeToString"):
        raise InputError(f"expected a proto or its bytes, got {type(example).__name__}", row=row)
    data: bytes = example.SerializeToString()
    return data


def _parse(examples: Sequence[bytes]) -> Iterable[Any]:
    try:
        listed = b"".join([field(1, example) for example in examples])
        parsed: Iterable[Any] = parse("Examples", listed).examples
        return parsed
    except DecodeError:  # find the row at fault
        for row, example in enumerate(examples):
            try:
                parse("Example", example)
            except DecodeError as error:
                raise InputError(f"not a serialized tf.Example: {error}", row=row) from None
        raise


def _split_checked(
    rows: list[list[bytes]],
) -> tuple[dict[bytes, bytes], dict[bytes, list[Value]]]:
    try:
        return _split(rows)
    except DecodeError:
        for row, entries in enumerate(rows):
            try:
                _split([entries])
            except DecodeError as error:
                raise InputError(f"not a serialized tf.Example: {error}", row=row) from None
        raise


def _split(rows: list[list[bytes]]) -> tuple[dict[bytes, bytes], dict[bytes, list[Value]]]:
    """Splits the rows' map entries: key -> shared value, and key -> [rows] values for others.

    Whole entries are compared by hash before any is parsed. If a key is repeated, as in a merged
    context, the later entry counts.
    """
    if not rows:
        return {}, {}
    everywhere = set(rows[0]).intersection(*rows[1:])
    shared = dict(_key_and_value(entry) for entry in rows[0] if entry in everywhere)
    if len(shared) < len(everywhere):  # a key has several values, whose order may differ
        everywhere, shared = set(), {}
    varying: dict[bytes, list[Value]] = {}
    for row, entries in enumerate(rows):
        last: dict[bytes, bytes] = {}
        for entry in entries:
            if entry not in everywhere:
                key, value = _key_and_value(entry)
                if key in shared:  # the row also has the shared value, perhaps later
                    last = last or dict(map(_key_and_value, entries))
                    value = last[key]
                if key not in varying:
                    varying[key] = [shared.get(key)] * len(rows)
                varying[key][row] = value
    return shared, varying


def _entry(key: bytes, value: bytes) -> bytes:
    """An entry of the map `features`."""
    return field(1, field(1, key) + field(2, value))


def _key_and_value(entry: bytes) -> tuple[bytes, bytes]:
    """A map entry's key and value: `0A size key 12 size value`, with mostly one-byte sizes."""
    if len(entry) > 2 and entry[0] == 0x0A and entry[1] < 128:
        end = entry[1] + 2
        left = len(entry) - end - 2
        if 0 <= left < 128 and entry[end] == 0x12 and entry[end + 1] == left:
            return entry[2:end], entry[end + 2 :]
    parsed = parse("FeatureEntry", entry)
    return parsed.key, parsed.value


def _entries(feature: Feature, values: list[Value]) -> Any:
    """Parses one feature's serialized values; returns one entry per row."""
    one_value = feature.kind is Kind.SINGLE and prod(size or 0 for size in feature.shape or ()) == 1
    quick = _one_value_each(values) if one_value and None not in values else None
    if quick is not None:
        return quick
    rows = [_parsed(feature, row, value) for row, value in enumerate(values)]
    if feature.kind is Kind.MULTI:
        return rows
    return [_shaped(feature, row, value) for row, value in enumerate(rows)]


_BYTES, _FLOAT, _INT64 = 0x0A, 0x12, 0x1A


def _one_value_each(values: Sequence[Any]) -> Array | list[bytes] | None:
    """The values [rows] if every row has one in the usual short encoding; else None.

    A Feature with one value is `kind size 0A size payload`, where kind is the tag of its list.
    """
    sizes = np.fromiter(map(len, values), np.int64, len(values))
    if sizes.min() < 4 or sizes.max() >= 128:
        return None
    data = np.frombuffer(b"".join(values), np.uint8)
    starts = np.cumsum(sizes) - sizes
    kind = data[0]
    usual = (data[starts] == kind) & (data[starts + 1] == sizes - 2)
    usual &= (data[starts + 2] == 0x0A) & (data[starts + 3] == sizes - 4)
    if not usual.all():
        return None
    if kind == _BYTES:
        return [value[4:] for value in values]
    if kind == _FLOAT:
        if (sizes != 8).any():
            return None
        return data.reshape(-1, 8)[:, 4:].copy().view("<f4").reshape(-1)
    payload = np.ones(data.size, bool)
    payload[(starts[:, None] + np.arange(4)).ravel()] = False
    ends = data[starts + sizes - 1] < 128
    numbers = read_varints(data[payload].tobytes()) if kind == _INT64 and ends.all() else None
    return None if numbers is None or numbers.size != len(values) else numbers.view(np.int64)


def _parsed(feature: Feature, row: int, value: Value) -> Any:
    """The values of a serialized Feature as a list; NOT_GIVEN if it has none."""
    if not value:
        return NOT_GIVEN
    try:
        found = parse("Feature", value)
    except DecodeError as error:
        message = f"not a serialized tf.train.Feature: {error}"
        raise InputError(message, feature=feature.name, row=row) from None
    for kind in ("int64_list", "float_list", "bytes_list"):
        if found.HasField(kind):
            return list(getattr(found, kind).value)
    return NOT_GIVEN


def _shaped(feature: Feature, row: int, values: Any) -> Any:
    """Reshapes a row's flat list: to a scalar, or to lists; -1 stands for a sequence's length."""
    if values is NOT_GIVEN:
        return values
    sizes = [int(size or 0) for size in feature.shape or ()]
    step = prod(sizes[1:] if feature.kind is Kind.SEQUENCE else sizes)
    fits = len(values) % step == 0 if feature.kind is Kind.SEQUENCE else len(values) == step
    if not fits:
        expected = "a multiple of " if feature.kind is Kind.SEQUENCE else ""
        raise InputError(
            f"expected {expected}{step} values, the example has {len(values)}",
            feature=feature.name,
            row=row,
        )
    if not sizes:
        return values[0]
    if feature.kind is Kind.SEQUENCE:
        sizes[0] = len(values) // step
    return object_array(values).reshape(sizes).tolist()
