"""How long a request takes to encode: ours, protobuf's tf.Examples, TensorFlow's tensor protos.

    python -m tests.client.bench_encoding

One process, one data set, the ways in turn, CPU time, the best of several rounds each: so the
ratios hold on a busy machine, where the milliseconds do not.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.client import (
    ClientSettings,
    ModelSchema,
    Signature,
    TensorSpec,
    encode_predict_request,
)
from colcast.client._dtypes import FLOAT, INT64, STRING
from colcast.client._inputs import Rows
from colcast.client._inputs_examples import Examples
from colcast.client._request import RequestOptions, build_request
from colcast.loadtest.variants import CPU, asking, measure_variants
from tensorflow_serving.apis import predict_pb2

CANDIDATES, USER_FEATURES, ITEM_FEATURES = 500, 150, 60
ROUNDS = 7
Columns = dict[str, Any]
LEAST = replace(CPU, over=min)


def make_data() -> tuple[ModelSchema, Columns]:
    """Integers, floats and strings in turn: [1] for the user's features, [500] for the items'."""
    generator = np.random.default_rng(20)
    names = [f"user_{i}" for i in range(USER_FEATURES)]
    names += [f"item_{i}" for i in range(ITEM_FEATURES)]
    dtypes = (INT64, FLOAT, STRING)
    specs = {n: TensorSpec(n, dtypes[i % 3], (None,)) for i, n in enumerate(names)}
    example = TensorSpec("examples", STRING, (None,))
    schema = ModelSchema(
        "wide",
        1,
        {
            "columnar": Signature("columnar", specs, {}, {}),
            "serving_default": Signature("serving_default", {"examples": example}, {}, {}),
        },
    )
    columns = {}
    for name, spec in specs.items():
        numbers = generator.integers(0, 10**6, 1 if name.startswith("user") else CANDIDATES)
        if spec.dtype is STRING:
            columns[name] = np.array([b"value_%d" % number for number in numbers], object)
        else:
            columns[name] = numbers.astype(spec.dtype.storage)
    return schema, columns


def tf_examples(rows: list[dict[str, Any]]) -> list[bytes]:
    """The tf.Examples as a service builds them today, with protobuf."""
    found = []
    for row in rows:
        features = {
            name: tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
            if isinstance(value, int)
            else tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
            if isinstance(value, float)
            else tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
            for name, value in row.items()
        }
        example = tf.train.Example(features=tf.train.Features(feature=features))
        found.append(example.SerializeToString())
    return found


def tensor_protos(columns: Columns) -> bytes:
    """The columnar request as TensorFlow's helper builds it."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "wide"
    request.model_spec.signature_name = "columnar"
    for name, values in columns.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
    encoded: bytes = request.SerializeToString()
    return encoded


def ways(schema: ModelSchema, columns: Columns) -> dict[str, Callable[[], Any]]:
    """What is timed."""
    options = RequestOptions(ClientSettings("127.0.0.1:1", "wide"), "columnar")
    arrays = {name: values for name, values in columns.items() if name.startswith("item")}
    user = {name: values.item() for name, values in columns.items() if name not in arrays}
    lists = [values.tolist() for values in arrays.values()]
    items = [dict(zip(arrays, row, strict=True)) for row in zip(*lists, strict=True)]
    mixed = [user | item for item in items]
    examples = tf_examples(mixed)

    def build(inputs: Rows | Examples) -> bytes:
        return build_request(schema, inputs, options).message

    return {
        "tf.Examples with protobuf": lambda: tf_examples(mixed),
        "tf.make_tensor_proto a column": lambda: tensor_protos(columns),
        "arrays, encode_predict_request": lambda: encode_predict_request(
            "wide", "columnar", columns
        ),
        "arrays, checked": lambda: build(Rows(arrays, user)),
        "rows of dicts, checked": lambda: build(Rows(items, user)),
        "mixed rows, user found": lambda: build(Rows(mixed)),
        "serialized tf.Examples, user found": lambda: build(Examples(examples)),
    }


def main() -> None:
    """Prints the table."""
    variants = [asking(title, way, 1, os.getpid()) for title, way in ways(*make_data()).items()]
    measure_variants([(f"{CANDIDATES} candidates", variants)], ROUNDS, [LEAST])


if __name__ == "__main__":
    main()
