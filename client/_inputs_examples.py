"""Serialized tf.Examples -> tables: what is equal on every row apart from what is not."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from colcast.client._decode import message
from colcast.client._dtypes import Array
from colcast.client._errors import DecodeError, InputError
from colcast.client._inputs import Table
from colcast.client._schema import Feature, Kind
from colcast.client._values import NOT_GIVEN
from colcast.client._wire import field, fields, read_varints


def serialized(examples: Sequence[Any]) -> list[bytes]:
    """tf.train.Example protos or their bytes -> bytes each.

    Raises:
        InputError: not a sequence, or an entry that is neither; its row is named.
    """
    if isinstance(examples, str | bytes) or not isinstance(examples, Sequence | np.ndarray):
        raise InputError(
            f"expected a list of tf.Examples or their bytes, got {type(examples).__name__}"
        )
    if set(map(type, examples)) == {bytes}:
        return list(examples)
    return [_serialized(row, example) for row, example in enumerate(examples)]


def split_context(elwc: Any) -> tuple[bytes, list[bytes]]:
    """An ExampleListWithContext, or its bytes -> (context, examples), serialized.

    Raises:
        InputError: not such a message.
    """
    context, examples = b"", []
    try:
        for number, _, value in fields(_serialized(None, elwc)):
            if number == 1:
                examples.append(message(number, value))
            elif number == 2:
                context += message(number, value)
    except DecodeError as error:
        raise InputError(f"not an ExampleListWithContext: {error}") from None
    return context, examples


def merged(context: bytes, examples: Sequence[bytes]) -> list[bytes]:
    """Each example with the context's features added; an example's own win.

    Two serialized messages in a row are their merge.
    """
    return [context + example for example in examples]


def tables_of_examples(
    examples: Sequence[bytes], features: Mapping[str, Feature]
) -> tuple[Table, Table]:
    """Serialized examples -> (what all of them share, as one row; the rest, as N rows).

    Features are compared as bytes, so what is equal everywhere is parsed once.

    Args:
        examples: N serialized tf.Examples.
        features: the signature's features; others are skipped.

    Raises:
        InputError: bytes that are no tf.Example, or values of a number or type that does not
            fit the feature.
    """
    entries, unused = _split(examples, features)
    shared: dict[str, Any] = {}
    varying: dict[str, Any] = {}
    for name, values in entries.items():
        if values.count(values[0]) == len(values):
            shared[name] = _column(features[name], values[:1])
        else:
            varying[name] = _column(features[name], values)
    return Table(1, shared), Table(len(examples), varying, unused)


# Implementation details follow.


def _serialized(row: int | None, example: Any) -> bytes:
    if isinstance(example, bytes | bytearray | memoryview):
        return bytes(example)
    if not hasattr(example, "SerializeToString"):
        raise InputError(f"expected a proto or its bytes, got {type(example).__name__}", row=row)
    data: bytes = example.SerializeToString()
    return data


def _messages() -> Any:
    from colcast.client._example_messages import messages  # protobuf: only who needs it pays

    return messages()


def _split(
    examples: Sequence[bytes], features: Mapping[str, Feature]
) -> tuple[dict[str, list[bytes | None]], frozenset[str]]:
    """Each feature's value bytes, a row each (None where absent), and the names not wanted."""
    parsed = _parse(examples)
    rows = len(examples)
    wanted = {name.encode(): name for name in features}
    found: dict[bytes, list[bytes | None]] = {}
    for row, example in enumerate(parsed.examples):
        for entry in example.features.feature:
            key = entry.key
            values = found.get(key)
            if values is None:
                values = found[key] = [None] * rows
            values[row] = entry.value
    unused = frozenset(key.decode(errors="replace") for key in found.keys() - wanted.keys())
    return {wanted[key]: values for key, values in found.items() if key in wanted}, unused


def _parse(examples: Sequence[bytes]) -> Any:
    decoder = _messages().Examples
    try:
        return decoder.FromString(b"".join([field(1, example) for example in examples]))
    except Exception:  # protobuf's DecodeError, whose import path depends on the version
        pass
    for row, example in enumerate(examples):
        try:
            decoder.FromString(field(1, example))
        except Exception as error:
            raise InputError(f"not a serialized tf.Example: {error}", row=row) from None
    raise InputError("the examples are not serialized tf.Examples")


def _column(feature: Feature, values: list[bytes | None]) -> Any:
    """One feature's serialized values -> [rows] entries as `column_of` takes them."""
    if feature.kind is Kind.SINGLE and all(size == 1 for size in feature.shape or (1,)):
        quick = _one_value_each(values)
        if quick is not None:
            return quick
    rows = [_parsed(value) for value in values]
    if feature.kind is Kind.MULTI:
        return rows
    sizes = tuple(int(size or 0) for size in feature.shape or ())
    return [_shaped(feature, row, value, sizes) for row, value in enumerate(rows)]


def _one_value_each(values: list[bytes | None]) -> Any:
    """The values if every row has one in the usual short form, without parsing; else None.

    A Feature with one value is `kind size 0x0A size payload`, where kind is the tag of its list.
    """
    if None in values:
        return None
    present: list[bytes] = values  # type: ignore[assignment]
    heads = {value[:1] + value[2:3] for value in present}
    if len(heads) != 1 or not all(4 <= len(v) < 128 and v[3] == len(v) - 4 for v in present):
        return None
    decode = _DECODERS.get(heads.pop())
    return None if decode is None else decode([value[4:] for value in present])


def _one_float_each(payloads: list[bytes]) -> Array | None:
    if not all(len(payload) == 4 for payload in payloads):
        return None
    return np.frombuffer(b"".join(payloads), "<f4")


def _one_integer_each(payloads: list[bytes]) -> Array | None:
    numbers = read_varints(b"".join(payloads))
    if numbers.size != len(payloads) or not all(payloads):
        return None
    return numbers.view(np.int64)


_DECODERS: dict[bytes, Callable[[list[bytes]], Any]] = {
    b"\x0a\x0a": lambda payloads: payloads,
    b"\x12\x0a": _one_float_each,
    b"\x1a\x0a": _one_integer_each,
}


def _parsed(value: bytes | None) -> Any:
    """A serialized Feature -> its values as a list; NOT_GIVEN if it says none."""
    if not value:
        return NOT_GIVEN
    feature = _messages().Feature.FromString(value)
    for kind in ("int64_list", "float_list", "bytes_list"):
        if feature.HasField(kind):
            return list(getattr(feature, kind).value)
    return NOT_GIVEN


def _shaped(feature: Feature, row: int, values: Any, sizes: tuple[int, ...]) -> Any:
    """A flat list in the shape of one row: a scalar, a list, or an array for more dimensions."""
    if values is NOT_GIVEN:
        return values
    if feature.kind is Kind.SEQUENCE:
        sizes = (-1, *sizes[1:])
    if len(sizes) <= 1 and feature.kind is Kind.SEQUENCE:
        return values
    needed = int(np.prod(sizes, dtype=np.int64))
    if (needed >= 0 and len(values) != needed) or (needed < 0 and len(values) % -needed):
        expected = "a multiple of " if needed < 0 else ""
        raise InputError(
            f"expected {expected}{abs(needed)} values, the example has {len(values)}",
            feature=feature.name,
            row=row,
        )
    if not sizes:
        return values[0]
    if len(sizes) == 1:
        return values
    nested = np.empty(len(values), object)
    nested[:] = values
    return nested.reshape(sizes).tolist()
