"""The formats of a ranking request, by the names used in every report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from colcast.client import (
    DTYPES,
    DecodeError,
    ModelSchema,
    RankingClient,
    SchemaError,
    Signature,
    split_shared,
)
from colcast.client.messages import parse
from colcast.client.wire import field
from colcast.loadtest.send.connection import CLASSIFY, REGRESS, Outputs, Request

# Server flags for comparing formats: TensorFlow parses tf.Examples, and no state is cached.
NO_STATES = ("--user_state_bytes=0", "--item_state_bytes=0")
FORMATS_ALONE = ("--example_transcoding=off", *NO_STATES)


# The formats, with the client's name for each (`colcast.client.Target`); None if the client cannot
# write it.
FORMATS: Mapping[str, Any] = {
    "example": "example",  # tf.Examples
    "elwc": None,  # an ExampleListWithContext
    "repeated": "repeated",  # columns, the user on every row
    "columnar": "columnar",  # columns, the user once
    "late": "late",  # the same, for a signature that computes the user once
    "stock": "stock",  # columns for servers that do not repeat rows
    "recorded": None,  # as recorded
}


@dataclass(frozen=True)
class RequestData:
    """One user and N candidates, in one or several forms from which requests are made.

    Attributes:
      rows: the number of candidates, N.
      user: feature -> value.
      items: N rows, or feature -> N values.
      examples: N serialized tf.Examples with all features; if empty, the client makes them from the
        rows.
      recorded: a recorded PredictRequest.
      only_recorded: why no other format than `recorded` can encode it; empty if others can.
    """

    rows: int
    user: Mapping[str, Any] | None = None
    items: Any = ()
    examples: Sequence[bytes] = ()
    recorded: bytes = b""
    only_recorded: str = ""


def signature_for(schema: ModelSchema, format_name: str, signature: str | None) -> str | None:
    """The signature that a format calls in a load test of `signature`; None for its usual one.

    Column formats call `signature` itself or, if that takes tf.Examples, the signature that the
    exporter made from it. The format late calls the late signature made from it. If `signature` is
    None, all formats test the signature from which the exporter made `columnar`.
    """
    if FORMATS[format_name] is None:
        return None
    if signature is None:
        return source_of(schema) if format_name == "example" else None
    called = schema.signature(signature)
    if format_name == "example":
        return signature
    if format_name == "late" and not any(f.one_row for f in called.features.values()):
        names = (f"{signature}_late", f"columnar_{signature}_late")
        return next((name for name in names if name in schema.signatures), None)
    if called.takes_examples:
        own = f"columnar_{signature}"
        if own in schema.signatures:
            return own
        return signature if schema.takes_text(called) else None
    return signature


def source_of(schema: ModelSchema, columnar: str = "columnar") -> str | None:
    """The signature from which the exporter made `columnar`, judged by its outputs.

    Among signatures with the same outputs, it is one that takes tf.Examples, else one with the same
    inputs. Returns None if there is neither.
    """
    made = schema.signatures.get(columnar)
    if made is None:
        return None
    outputs = {name: spec.dtype for name, spec in made.outputs.items()}
    found = [
        one
        for one in schema.signatures.values()
        if not one.name.startswith("columnar")
        and outputs == {name: spec.dtype for name, spec in one.outputs.items()}
        and (one.takes_examples or one.features.keys() == made.features.keys())
    ]
    found.sort(key=lambda one: (not one.takes_examples, one.name != "serving_default", one.name))
    return found[0].name if found else None


def encode(client: RankingClient, format_name: str, data: RequestData) -> Request:
    """Encodes the data as a request in a format."""
    if data.only_recorded and format_name != "recorded":
        raise ValueError(f"{data.only_recorded}; it can be sent only as recorded")
    if format_name == "elwc":
        return elwc_request(client.schema(), data.examples or _examples(client, data))
    if format_name == "recorded":
        if not data.recorded:
            raise ValueError("needs recorded PredictRequests, --traffic requests:FILE")
        return Request(data.recorded, data.rows)
    target = FORMATS[format_name]
    if data.examples and (target == "example" or not data.items):
        payload = client.encode(examples=data.examples, target=target)
    else:
        payload = client.encode(data.user, data.items, target=target)
    return Request(payload, data.rows)


def _examples(client: RankingClient, data: RequestData) -> Sequence[bytes]:
    """The rows as tf.Examples, as the client would send them."""
    predict = client.encode(data.user, data.items, target="example")
    (tensor,) = parse("PredictRequest", predict).inputs.values()
    return list(tensor.string_val)


def parse_formats(text: str) -> list[str]:
    """Reads `example,columnar,late`."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FORMATS:
            raise ValueError(f"no format {name!r}; expected one of {', '.join(FORMATS)}")
    return names


def parse_format(text: str) -> str:
    """Reads the name of one format."""
    name, *others = parse_formats(text)
    if others:
        raise ValueError(f"{text!r}: expected one format")
    return name


def signature_named(request: Request) -> str:
    """The signature that a PredictRequest names."""
    spec = parse("PredictRequest", request.payload).model_spec
    return str(spec.signature_name) or "serving_default"


# TF-Ranking's users send this format to Regress and Classify. It saves only bytes: the server
# copies the context before every candidate, and the model parses it N times.
def elwc_request(schema: ModelSchema, examples: Sequence[bytes]) -> Request:
    """A call of Regress or Classify for N serialized tf.Examples.

    Features that are equal in all examples become the context.
    """
    signature = scoring_signature(schema)
    context, items = split_shared(examples)
    spec = field(1, schema.model.encode()) + field(3, signature.name.encode())
    listed = b"".join(field(1, item) for item in items) + field(2, context)
    payload = field(1, spec) + field(2, field(2, listed))
    if "outputs" in signature.outputs:
        shape = signature.outputs["outputs"].shape or (None,)
        decode = partial(_regression, column=len(shape) == 2)
        return Request(payload, len(examples), REGRESS, decode)
    names = tuple(name for name in _CLASS_OUTPUTS if name in signature.outputs)
    return Request(payload, len(examples), CLASSIFY, partial(_classification, names=names))


def scoring_signature(schema: ModelSchema) -> Signature:
    """The signature for Regress or Classify, if possible the one that Predict uses for examples."""
    found = [one for one in schema.signatures.values() if _scores(one)]
    if not found:
        raise SchemaError(
            f"format 'elwc' needs a signature that Regress or Classify can run, with the input "
            f"'inputs' and the outputs 'outputs', or 'classes' and 'scores'; model "
            f"{schema.model!r} has {', '.join(sorted(schema.signatures))}"
        )
    predicted = schema.example_signature()
    return min(found, key=lambda one: (one is not predicted, one.method not in _METHODS, one.name))


_METHODS = ("tensorflow/serving/regress", "tensorflow/serving/classify")
_CLASS_OUTPUTS = ("classes", "scores")


def _scores(signature: Signature) -> bool:
    if [(name, spec.dtype) for name, spec in signature.inputs.items()] != [
        ("inputs", DTYPES["string"])
    ]:
        return False
    outputs = set(signature.outputs)
    return outputs == {"outputs"} or (len(outputs) <= 2 and not outputs.isdisjoint(_CLASS_OUTPUTS))


def _regression(response: bytes, *, column: bool) -> Outputs:
    """Decodes a RegressionResponse into the outputs that Predict would return: [N], or [N, 1]."""
    values = [one.value for one in parse("RegressionResponse", response).result.regressions]
    outputs = np.array(values, np.float32)
    return {"outputs": outputs[:, None] if column else outputs}


def _classification(response: bytes, *, names: Sequence[str]) -> Outputs:
    """Decodes a ClassificationResponse into the outputs of a Predict, each [N, classes]."""
    result = parse("ClassificationResponse", response).result
    rows = [list(one.classes) for one in result.classifications]
    if len({len(row) for row in rows}) != 1:
        raise DecodeError("rows with different numbers of classes, or no rows")
    found: Outputs = {}
    if "classes" in names:
        labels = [one.label for row in rows for one in row]
        found["classes"] = np.fromiter(labels, object, len(labels)).reshape(len(rows), -1)
    if "scores" in names:
        scores = [[one.score for one in row] for row in rows]
        found["scores"] = np.array(scores, np.float32).reshape(len(rows), -1)
    return found
