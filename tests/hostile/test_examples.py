"""tf.Examples in Predict, Classify, Regress and MultiInference: any are answered or refused.

A model that returns the parsed features shows that Examples that are read as columns get the
answers and errors of TensorFlow's parser: bit-identical answers, and equal errors.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.client.wire import field, varint
from colcast.export import export_saved_model
from colcast.server import ServerProcess
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
)

SPEC = {
    "user_age": tf.io.FixedLenFeature([], tf.int64),
    "user_name": tf.io.FixedLenFeature([2], tf.string, default_value=[b"x\0", b""]),
    "user_tags": tf.io.VarLenFeature(tf.string),
    "price": tf.io.FixedLenFeature([2], tf.float32, default_value=[-0.0, 1.5]),
    "ids": tf.io.VarLenFeature(tf.int64),
    "steps": tf.io.FixedLenSequenceFeature([2], tf.float32, True, default_value=-1.0),
    "words": tf.io.FixedLenSequenceFeature([], tf.string, True, default_value=b"-"),
    "bag": tf.io.RaggedFeature(tf.float32),
}
# Features that are not listed are strings, kind 1.
KINDS = {"user_age": 3, "ids": 3, "price": 2, "steps": 2, "bag": 2}
COUNTS = {"user_age": 1, "user_name": 2, "price": 2}


class Echo(tf.Module):
    """A model that returns the parsed features."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def parse(self, examples: Any) -> Any:
        parsed = tf.io.parse_example(examples, SPEC)
        dense = {
            name: tf.sparse.to_dense(value)
            if isinstance(value, tf.SparseTensor)
            else value.to_tensor()
            if isinstance(value, tf.RaggedTensor)
            else value
            for name, value in parsed.items()
        }
        return {
            **dense,
            "ids/shape": tf.repeat(parsed["ids"].dense_shape[None], tf.size(examples), 0),
            "bag/length": parsed["bag"].row_lengths(),
        }


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("echo")
    module = Echo()
    tf.saved_model.save(module, str(folder / "parsed"), {"serving_default": module.parse})
    export_saved_model(
        folder / "parsed", folder / "echo" / "1", user_features=["user_*"], late=True
    )
    return folder / "echo"


class Stub:
    """Calls Predict with Examples; makes answers and errors comparable."""

    def __init__(self, target: str) -> None:
        self._stub = prediction_service_pb2_grpc.PredictionServiceStub(
            grpc.insecure_channel(target)
        )

    def predict(self, examples: list[bytes]) -> Any:
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "echo"
        proto = tf.make_tensor_proto(np.array(examples, object), tf.string, [len(examples)])
        request.inputs["examples"].CopyFrom(proto)
        try:
            response = self._stub.Predict(request, timeout=60)
        except grpc.RpcError as error:
            return error.code(), error.details()
        assert response.model_spec.signature_name == "serving_default"
        return {name: proto.SerializeToString() for name, proto in response.outputs.items()}


@pytest.fixture(scope="module")
def stubs(base: Path) -> Iterator[dict[str, Stub]]:
    flags = [["--example_transcoding=" + mode] for mode in ("off", "exact", "late")]
    with (
        ServerProcess("echo", base, flags=flags[0]) as off,
        ServerProcess("echo", base, flags=flags[1]) as exact,
        ServerProcess("echo", base, flags=flags[2]) as late,
    ):
        yield {"off": Stub(off.target), "exact": Stub(exact.target), "late": Stub(late.target)}


@st.composite
def lists(draw: Any, kind: int, count: int | None) -> bytes:
    """The values of a Feature, packed or not."""
    sizes = {"min_size": count or 0, "max_size": 4 if count is None else count}
    if kind == 1:
        return b"".join(field(1, v) for v in draw(st.lists(st.binary(max_size=3), **sizes)))
    packed = draw(st.booleans())
    if kind == 2:
        floats = draw(st.lists(st.floats(width=32), **sizes))
        values = [np.float32(value).tobytes() for value in floats]
        tag = b"\x0d"
    else:
        integers = draw(st.lists(st.integers(-(2**63), 2**63 - 1), **sizes))
        values = [varint(value % 2**64) for value in integers]
        tag = b"\x08"
    return field(1, b"".join(values)) if packed else b"".join(tag + value for value in values)


@st.composite
def entries(draw: Any, name: str, hostile: bool) -> bytes:
    """One feature of an Example."""
    kind, count = KINDS.get(name, 1), COUNTS.get(name)
    if name == "steps":
        count = draw(st.sampled_from([0, 2, 4]))
    if hostile and draw(st.integers(0, 5)) == 0:
        kind, count = draw(st.integers(0, 4)), None
    feature = field(kind, draw(lists(kind if kind in (1, 2, 3) else 1, count)))
    if hostile and draw(st.integers(0, 5)) == 0:
        feature = draw(st.sampled_from([b"", feature + feature, feature[:-1], feature + b"\0"]))
    key, value = field(1, name.encode()), field(2, feature)
    return field(1, value + key if hostile and draw(st.integers(0, 9)) == 0 else key + value)


@st.composite
def requests(draw: Any, hostile: bool) -> list[bytes]:
    """Examples of one user, some of which may differ."""
    names = list(SPEC)
    optional = [name for name in names if name not in ("user_age",) or hostile]
    missing = draw(st.sets(st.sampled_from(optional), max_size=2))
    user = {
        n: draw(entries(n, hostile)) for n in names if n.startswith("user") and n not in missing
    }
    examples = []
    for _ in range(draw(st.integers(1, 5))):
        items = {n: draw(entries(n, hostile)) for n in names if not n.startswith("user")}
        for name in draw(st.sets(st.sampled_from(sorted(items)), max_size=2)):
            del items[name]
        features = [*user.values(), *items.values()]
        if draw(st.booleans()):
            features.append(field(1, field(1, b"unknown") + field(2, b"?")))
        if draw(st.integers(0, 3)) == 0:
            features = list(draw(st.permutations(features)))
        if hostile and draw(st.integers(0, 5)) == 0:
            features.append(draw(entries(draw(st.sampled_from(names)), hostile)))
        cut = draw(st.integers(0, len(features))) if draw(st.integers(0, 3)) == 0 else 0
        example = field(1, b"".join(features[cut:]))
        if cut:
            example = field(1, b"".join(features[:cut])) + example
        if hostile and draw(st.integers(0, 9)) == 0:
            example = draw(st.sampled_from([b"", example[:-1], example + b"\x10\1", b"\xff"]))
        examples.append(example)
    return examples


def check(stubs: dict[str, Stub], examples: list[bytes]) -> None:
    expected = stubs["off"].predict(examples)
    assert stubs["exact"].predict(examples) == expected
    assert stubs["late"].predict(examples) == expected  # exact, because the model does not round


CHEAP = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@CHEAP
@given(examples=requests(hostile=False))
def test_examples_are_answered_as_tensorflow_parses_them(stubs, examples):
    check(stubs, examples)


@CHEAP
@given(examples=requests(hostile=True))
def test_hostile_examples_are_answered_or_refused_in_tensorflows_words(stubs, examples):
    check(stubs, examples)


@CHEAP
@given(
    requests=st.lists(requests(hostile=False), min_size=2, max_size=3),
    order=st.randoms(use_true_random=False),
)
def test_examples_of_several_users_are_answered_as_tensorflow_parses_them(stubs, requests, order):
    examples = [one for request in requests for one in request] * 4
    order.shuffle(examples)
    check(stubs, examples)


@pytest.mark.parametrize(
    "examples",
    [
        [],
        [b""],
        [b"", b""],
        [field(1, b"")] * 3,
        [field(1, field(1, field(1, b"user_age") + field(2, b"")))],
        [b"\xff\xff\xff"],
    ],
)
def test_empty_requests_and_examples(stubs, examples):
    check(stubs, examples)


def test_tensorflows_error_about_a_long_example_stays_short_enough_to_send(stubs):
    """TensorFlow's message quotes the example, but gRPC clients accept only headers up to 8 KiB."""
    long = field(1, field(1, field(1, b"note") + field(2, field(1, field(1, b"\xff" * (1 << 20))))))
    code, message = stubs["off"].predict([long[:-1]])
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "parse" in message
    assert "..." in message
