"""Classify, Regress and MultiInference with malformed bytes and examples.

Each is answered with the right code and the culprit's name, and the next good request is served.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from colcast.client.wire import field
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess
from google.protobuf.message import DecodeError
from tensorflow_serving.apis import classification_pb2, inference_pb2, regression_pb2

from .conftest import bytes_method

SERVICE = "/tensorflow.serving.PredictionService"
REQUESTS = {
    "Classify": classification_pb2.ClassificationRequest,
    "Regress": regression_pb2.RegressionRequest,
    "MultiInference": inference_pb2.MultiInferenceRequest,
}


def feature(name: bytes, value: bytes) -> bytes:
    """A serialized Example of one feature, whose Feature message is `value`."""
    return field(1, field(1, field(1, name) + field(2, value)))


def example_list(*examples: bytes) -> bytes:
    return field(2, field(1, b"".join(field(1, one) for one in examples)))


def with_context(context: bytes, *examples: bytes) -> bytes:
    each = b"".join(field(1, one) for one in examples)
    return field(2, field(2, field(2, context) + each))


MODEL = field(1, b"half_plus_two") + field(3, b"regress_x_to_y")
SPEC = field(1, MODEL)
TASK = field(1, SPEC + field(2, b"tensorflow/serving/regress"))
FLOAT_2 = field(2, field(1, b"\x00\x00\x00\x40"))
X_IS_2 = feature(b"x", FLOAT_2)
GOOD = SPEC + example_list(X_IS_2)


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


@pytest.mark.parametrize("method", REQUESTS)
@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b"\xff" * 10, ["tag longer than 5 bytes"]),
        (field(2, field(1, b"\x0a\x7f")), ["length goes past the end", "field 2.1.1, byte"]),
    ],
)
def test_says_what_is_malformed_and_where(raw, method, message, words):
    name = REQUESTS[method].DESCRIPTOR.name
    message = (TASK if method == "MultiInference" else SPEC) + message
    with pytest.raises(DecodeError):
        REQUESTS[method].FromString(message)
    raw.refuses(method, message, "INVALID_ARGUMENT", f"malformed {name}", *words)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (b"\x0a\x05", ["field 2.2.2.1,", "length goes past the end"]),
        (b"not an example", ["field 2.2.2"]),
        (feature(b"\xff", FLOAT_2), ["field 2.2.2.1.1.1,", "UTF-8"]),
        (feature(b"x", field(2, field(1, b"abc"))), ["field 2.2.2.1.1.2.2.1,", "3 bytes"]),
        (feature(b"x", field(3, field(1, b"\x80"))), ["field 2.2.2.1.1.2.3.1,", "varint"]),
    ],
)
def test_a_context_that_is_no_example_is_refused(raw, context, words):
    """The server puts the context before each example, which it must not swallow."""
    message = SPEC + with_context(context, X_IS_2)
    raw.refuses("Regress", message, "INVALID_ARGUMENT", "malformed", *words)


@pytest.mark.parametrize(
    ("example", "word"),
    [
        (b"\xff\xff", "parse"),
        (X_IS_2[:-1], "parse"),
        (b"", "x"),
        (feature(b"y", FLOAT_2), "x"),
        (feature(b"x", field(1, field(1, b"two"))), "x"),
        (feature(b"x", field(3, field(1, b"\x02"))), "x"),
        (feature(b"x", field(2, field(1, b"\x00\x00\x00\x40" * 2))), "x"),
        (feature(b"x", field(2, b"")), "x"),
        (feature(b"x", b""), "x"),
    ],
)
@pytest.mark.parametrize("context", [None, b"", feature(b"x2", FLOAT_2)])
def test_an_example_the_model_cannot_parse_is_refused(raw, example, word, context):
    given = example_list(X_IS_2, example)
    if context is not None:
        given = with_context(context, X_IS_2, example)
    raw.refuses("Regress", SPEC + given, "INVALID_ARGUMENT", word)


def test_a_context_of_many_examples_cannot_fill_the_memory(raw):
    """2 MB ask for 512 GiB: a context of one megabyte, repeated for half a million examples."""
    context = feature(b"x", FLOAT_2) + feature(b"note", field(1, field(1, b"n" * (1 << 20))))
    message = SPEC + with_context(context, *[b""] * (1 << 19))
    before = raw.peak_memory_bytes()
    raw.refuses("Regress", message, "RESOURCE_EXHAUSTED", "context", "524288 examples")
    assert raw.peak_memory_bytes() - before < 1 << 28


def test_more_examples_than_rows_are_allowed_are_refused_before_memory_is_taken(raw):
    """The request has 8 MB, but four million rows."""
    message = SPEC + with_context(X_IS_2, *[b""] * (1 << 22))
    before = raw.peak_memory_bytes()
    raw.refuses("Regress", message, "RESOURCE_EXHAUSTED", "1048576 examples", "max_request_rows")
    assert raw.peak_memory_bytes() - before < 1 << 28


def test_thousands_of_tasks_are_judged_before_any_is_run(raw):
    message = TASK * 10_000 + example_list(X_IS_2)
    raw.refuses("MultiInference", message, "INVALID_ARGUMENT", "Duplicate", "regress_x_to_y")


def test_tensorflows_error_about_a_long_example_stays_short_enough_to_send(raw):
    """TensorFlow's message quotes the example, but gRPC clients accept only headers up to 8 KiB."""
    example = feature(b"note", field(1, field(1, b"\xff" * (1 << 20)))) + X_IS_2[:-1]
    raw.refuses("Regress", SPEC + example_list(example), "INVALID_ARGUMENT", "parse", "...")
