"""How long a request takes to encode: ours, protobuf's tf.Examples, TensorFlow's tensor protos.

    python -m tests.client.bench_encoding

One process, one data set, the ways in turn, CPU time, the best of several rounds each: so the
ratios hold on a busy machine, where the milliseconds do not.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

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
from tensorflow_serving.apis import predict_pb2

CANDIDATES, USER_FEATURES, ITEM_FEATURES = 500, 150, 60
ROUNDS = 7


class Data(NamedTuple):
    """The same request in the forms that are compared.

    Attributes:
        schema: the model's.
        columns: input -> array; [1] for the user's, [500] for the items'.
        user: feature -> Python value.
        items: 500 dicts.
        mixed: 500 dicts with the user's features in each.
        examples: 500 serialized tf.Examples.
    """

    schema: ModelSchema
    columns: dict[str, Any]
    user: dict[str, Any]
    items: list[dict[str, Any]]
    mixed: list[dict[str, Any]]
    examples: list[bytes]


def make_data() -> Data:
    """Integers, floats and strings in turn."""
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
    plain = {name: values.tolist() for name, values in columns.items()}
    user = {name: plain[name][0] for name in names[:USER_FEATURES]}
    items = [{name: plain[name][i] for name in names[USER_FEATURES:]} for i in range(CANDIDATES)]
    mixed = [user | item for item in items]
    data = Data(schema, columns, user, items, mixed, [])
    return data._replace(examples=tf_examples(data))


def tf_examples(data: Data) -> list[bytes]:
    """The tf.Examples as a service builds them today, with protobuf."""
    found = []
    for row in data.mixed:
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


def tensor_protos(data: Data) -> bytes:
    """The columnar request as TensorFlow's helper builds it."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "wide"
    request.model_spec.signature_name = "columnar"
    for name, values in data.columns.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
    encoded: bytes = request.SerializeToString()
    return encoded


def ways(data: Data) -> dict[str, Callable[[], Any]]:
    """What is timed."""
    options = RequestOptions(ClientSettings("127.0.0.1:1", "wide"), "columnar")
    arrays = {name: values for name, values in data.columns.items() if name.startswith("item")}

    def build(inputs: Rows | Examples) -> bytes:
        return build_request(data.schema, inputs, options).message

    return {
        "tf.Examples with protobuf": lambda: tf_examples(data),
        "tf.make_tensor_proto a column": lambda: tensor_protos(data),
        "arrays, encode_predict_request": lambda: encode_predict_request(
            "wide", "columnar", data.columns
        ),
        "arrays, checked": lambda: build(Rows(arrays, data.user)),
        "rows of dicts, checked": lambda: build(Rows(data.items, data.user)),
        "mixed rows, user found": lambda: build(Rows(data.mixed)),
        "serialized tf.Examples, user found": lambda: build(Examples(data.examples)),
    }


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Way -> least CPU time in milliseconds, the ways in turn in every round."""
    found: dict[str, float] = {}
    timed = ways(make_data())
    for _ in range(rounds):
        for name, way in timed.items():
            start = time.process_time()
            way()
            taken = (time.process_time() - start) * 1e3
            found[name] = min(taken, found.get(name, taken))
    return found


def main() -> None:
    """Prints the table, or JSON with --json."""
    times = measure()
    if "--json" in sys.argv[1:]:
        print(json.dumps({"milliseconds": times}, indent=2))
        return
    examples, protos = list(times.values())[:2]
    head = f"{CANDIDATES} candidates, {USER_FEATURES} user and {ITEM_FEATURES} item features"
    print(f"{head:<52}{'ms':>9}{'vs tf.Example':>15}{'vs tensor proto':>17}")
    for name, taken in times.items():
        print(f"  {name:<50}{taken:>9.2f}{examples / taken:>14.1f}x{protos / taken:>16.1f}x")


if __name__ == "__main__":
    main()
