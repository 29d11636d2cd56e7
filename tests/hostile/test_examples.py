"""tf.Examples in Predict, Classify, Regress and MultiInference: any are answered or refused.

A model that returns the parsed features shows that Examples that are read as columns get the
answers and errors of TensorFlow's parser: bit-identical answers, and equal errors.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.client.wire import field, varint
from colcast.export import export_saved_model
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from .conftest import bytes_method

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


SERVICE = "/tensorflow.serving.PredictionService"


def feature(name: bytes, value: bytes) -> bytes:
    """A serialized Example of one feature, whose Feature message is `value`."""
    return field(1, field(1, field(1, name) + field(2, value)))


def example_list(*examples: bytes) -> bytes:
    return field(2, field(1, b"".join(field(1, one) for one in examples)))


def with_context(context: bytes, *examples: bytes) -> bytes:
    each = b"".join(field(1, one) for one in examples)
    return field(2, field(2, field(2, context) + each))


MODEL = field(1, b"half_plus_two") + field(3, b"regress_x_to_y")
OF_MODEL = field(1, MODEL)
TASK = field(1, OF_MODEL + field(2, b"tensorflow/serving/regress"))
FLOAT_2 = field(2, field(1, b"\x00\x00\x00\x40"))
X_IS_2 = feature(b"x", FLOAT_2)
GOOD = OF_MODEL + example_list(X_IS_2)


class Raw:
    """Sends bytes to any method of the prediction service."""

    def __init__(self, server: ServerProcess) -> None:
        self.pid = server.pid
        self._channel = grpc.insecure_channel(
            server.target, options=[("grpc.max_receive_message_length", -1)]
        )

    def send(self, method: str, message: bytes) -> bytes:
        """The answer's bytes; raises grpc.RpcError."""
        return bytes_method(self._channel, f"{SERVICE}/{method}")(message, timeout=120)

    def error_of(self, method: str, message: bytes) -> tuple[str, str]:
        """The error that the server answers with, as (code, message)."""
        with pytest.raises(grpc.RpcError) as raised:
            self.send(method, message)
        return raised.value.code().name, raised.value.details()

    def refuses(self, method: str, message: bytes, code: str, *words: str) -> None:
        """Checks the error's code and words, and that the next good request is served."""
        got_code, details = self.error_of(method, message)
        assert got_code == code, details
        assert all(word in details for word in words), details
        assert self.regress(GOOD) == [3.0]

    def regress(self, message: bytes) -> list[float]:
        """Calls Regress; returns the values."""
        response = regression_pb2.RegressionResponse.FromString(self.send("Regress", message))
        return [one.value for one in response.result.regressions]

    def peak_memory_bytes(self) -> int:
        return ProcessMeter(self.pid).peak_memory_bytes()


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Raw]:
    directory = tmp_path_factory.mktemp("models")
    command = [sys.executable, "-m", "tests.conformance.models", directory, "half_plus_two"]
    root = Path(__file__).resolve().parents[2]
    subprocess.run(command, check=True, capture_output=True, cwd=root)
    with ServerProcess("half_plus_two", directory / "half_plus_two") as server:
        yield Raw(server)


@pytest.mark.parametrize(
    ("example", "word"),
    [
        (b"\xff\xff", "parse"),
        (b"", "x"),
        (feature(b"x", field(1, field(1, b"two"))), "x"),
        (feature(b"x", field(2, field(1, b"\x00\x00\x00\x40" * 2))), "x"),
    ],
)
@pytest.mark.parametrize("context", [None, b"", feature(b"x2", FLOAT_2)])
def test_an_example_the_model_cannot_parse_is_refused(raw, example, word, context):
    given = example_list(X_IS_2, example)
    if context is not None:
        given = with_context(context, X_IS_2, example)
    raw.refuses("Regress", OF_MODEL + given, "INVALID_ARGUMENT", word)


def test_a_context_of_many_examples_cannot_fill_the_memory(raw):
    """2 MB ask for 512 GiB: a context of one megabyte, repeated for half a million examples."""
    context = feature(b"x", FLOAT_2) + feature(b"note", field(1, field(1, b"n" * (1 << 20))))
    message = OF_MODEL + with_context(context, *[b""] * (1 << 19))
    before = raw.peak_memory_bytes()
    raw.refuses("Regress", message, "RESOURCE_EXHAUSTED", "context", "524288 examples")
    assert raw.peak_memory_bytes() - before < 1 << 28


def test_thousands_of_tasks_are_judged_before_any_is_run(raw):
    message = TASK * 10_000 + example_list(X_IS_2)
    raw.refuses("MultiInference", message, "INVALID_ARGUMENT", "Duplicate", "regress_x_to_y")


def test_tensorflows_error_about_a_long_example_stays_short_enough_to_send(raw):
    """TensorFlow's message quotes the example, but gRPC clients accept only headers up to 8 KiB."""
    example = feature(b"note", field(1, field(1, b"\xff" * (1 << 20)))) + X_IS_2[:-1]
    raw.refuses("Regress", OF_MODEL + example_list(example), "INVALID_ARGUMENT", "parse", "...")
