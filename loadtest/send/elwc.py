"""ExampleListWithContext: one tf.Example for the user, and one for each candidate's own features.

TF-Ranking's users send it to Regress and Classify. It saves only bytes: the server copies the
context before every candidate, and the model parses it N times.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from colcast.client import (
    DTYPES,
    DecodeError,
    ModelSchema,
    SchemaError,
    Signature,
    split_shared,
)
from colcast.client.wire import field, fields, message
from colcast.loadtest.send.connection import CLASSIFY, REGRESS, Outputs, Request


def elwc_request(schema: ModelSchema, examples: Sequence[bytes]) -> Request:
    """A call of Regress or Classify for N serialized tf.Examples.

    Features that are equal in all examples become the context.

    Raises:
      colcast.client.SchemaError: the model has no signature that Regress or Classify can run.
      colcast.client.InputError: the bytes are not a tf.Example.
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
    """The signature for Regress or Classify, preferably the one Predict uses for tf.Examples.

    Raises:
      colcast.client.SchemaError: there is no such signature.
    """
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
    values = [_float_in(entry, 1) for entry in _messages(_result(response), 1)]
    outputs = np.array(values, np.float32)
    return {"outputs": outputs[:, None] if column else outputs}


def _classification(response: bytes, *, names: Sequence[str]) -> Outputs:
    """Decodes a ClassificationResponse into the outputs of a Predict, each [N, classes]."""
    rows = [list(_messages(entry, 1)) for entry in _messages(_result(response), 1)]
    if len({len(row) for row in rows}) != 1:
        raise DecodeError("rows of different numbers of classes, or no rows")
    found: Outputs = {}
    if "classes" in names:
        labels = [next(_messages(one, 1), b"") for row in rows for one in row]
        found["classes"] = np.fromiter(labels, object, len(labels)).reshape(len(rows), -1)
    if "scores" in names:
        scores = [[_float_in(one, 2) for one in row] for row in rows]
        found["scores"] = np.array(scores, np.float32).reshape(len(rows), -1)
    return found


def _result(response: bytes) -> bytes:
    return b"".join(_messages(response, 1))


def _messages(data: bytes, wanted: int) -> Iterator[bytes]:
    """Yields the messages, or strings, in field `wanted`."""
    return (message(number, value) for number, _, value in fields(data) if number == wanted)


def _float_in(data: bytes, wanted: int) -> float:
    """The float in a field; 0 if it is absent, since zeros are not written."""
    found = b"".join(_messages(data, wanted)) or bytes(4)
    if len(found) % 4:
        raise DecodeError(f"field {wanted} is not a float")
    return float(np.frombuffer(found, "<f4")[-1])
