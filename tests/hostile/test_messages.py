"""Malformed messages, tensors for all memory, and compressed messages, which wait compressed."""

import gzip
import os
import socket
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
import tensorflow as tf
from colcast.client.wire import field
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess
from google.protobuf import text_format
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import get_model_status_pb2, predict_pb2

from ..waiting import wait_until
from . import http2
from .conftest import bytes_method

CORPUS = Path(__file__).parent / "corpus.tar.gz"


def test_no_input_of_the_fuzz_corpus_upsets_the_server(client, good_request, server):
    """A corpus file whose second byte is even contains a message after its first two bytes."""
    with tarfile.open(CORPUS) as kept:
        wire = [entry for entry in kept if entry.name.startswith("wire/")]
        inputs = [file.read() for entry in wire if (file := kept.extractfile(entry))]
    messages = [data[2:] for data in inputs if len(data) > 2 and data[1] % 2 == 0]
    assert messages
    codes = {client.code_of(message) for message in messages}
    assert codes <= {"OK", "INVALID_ARGUMENT", "NOT_FOUND"}, server.log()
    assert client.send(good_request.SerializeToString()).outputs


MANY = 1 << 40


def tensor(text: str) -> tensor_pb2.TensorProto:
    """A TensorProto from its text form."""
    return text_format.Parse(text, tensor_pb2.TensorProto())


def shape(*sizes: int) -> str:
    """The text form of a tensor_shape."""
    return "tensor_shape { " + " ".join(f"dim {{ size: {size} }}" for size in sizes) + " }"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("age", f"dtype: DT_INT64 {shape(MANY)} int64_val: 1"),
        ("title", f"dtype: DT_STRING {shape(MANY)} string_val: 'x'"),
        ("title", f"dtype: DT_STRING {shape(MANY)}"),
    ],
)
def test_one_value_can_not_fill_the_memory(expect_refused, good_request, server, name, text):
    """TensorFlow repeats a short list's last value, so a few bytes can ask for terabytes."""
    for other in good_request.inputs:
        if other != name:
            first = tf.make_ndarray(good_request.inputs[other])[:1]
            good_request.inputs[other].CopyFrom(tf.make_tensor_proto(first))
    good_request.inputs[name].CopyFrom(tensor(text))
    meter = ProcessMeter(server.pid)
    before = meter.peak_memory_bytes()
    expect_refused(good_request.SerializeToString(), "RESOURCE_EXHAUSTED", f'"{name}"')
    assert meter.peak_memory_bytes() - before < 1 << 28


MIB = 1 << 20
INFLATED = 48 * MIB
NUM_BOMBS = 20


class Reader(tf.Module):
    """Reads a file; a pipe makes it wait until the test opens the pipe, too."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.string, "path")])
    def read(self, path: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"size": tf.strings.length(tf.io.read_file(path))}


@pytest.fixture(name="reader_path", scope="module")
def _reader_path(tmp_path_factory) -> Path:
    reader_path = tmp_path_factory.mktemp("reader")
    module = Reader()
    tf.saved_model.save(module, str(reader_path / "1"), signatures=module.read)
    return reader_path


@pytest.fixture(name="target", scope="module")
def serve_on_one_worker(reader_path) -> Iterator[ServerProcess]:
    flags = ["--num_workers=1", f"--max_request_bytes={64 * MIB}"]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
        with ServerProcess("reader", reader_path, flags) as process:
            yield process


def request_to_read(path: str | bytes, model: str = "reader") -> bytes:
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.inputs["path"].CopyFrom(tf.make_tensor_proto(path))
    return request.SerializeToString()


def make_bomb() -> bytes:
    """A request of 48 MiB, compressed to 48 KiB, which fit into a connection's first window."""
    return gzip.compress(request_to_read(b"\0" * INFLATED, model="nobody"))


def send_compressed(target: str, message: bytes) -> socket.socket:
    connection = http2.connect(target)
    headers = http2.request_headers(grpc_encoding="gzip")
    connection.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, headers))
    data = http2.grpc_message(message, compressed=True)
    for at in range(0, len(data), 16384):
        last = http2.END_STREAM if at + 16384 >= len(data) else 0
        connection.sendall(http2.frame(http2.DATA, last, 1, data[at : at + 16384]))
    return connection


def ask_for_status(channel: grpc.Channel) -> None:
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "reader"
    path = "/tensorflow.serving.ModelService/GetModelStatus"
    bytes_method(channel, path)(request.SerializeToString(), timeout=60)


def test_inflated_messages_of_a_host_have_a_limit(tmp_path, reader_path):
    """The limit for one host is three quarters of 80 MiB, which two requests of 48 MiB exceed."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    unknown_field = field(100, bytes(INFLATED))
    flags = ["--num_workers=2", f"--max_rest_bytes={80 * MIB}"]
    with (
        ServerProcess("reader", reader_path, flags) as server,
        grpc.insecure_channel(server.target) as channel,
    ):
        predict = bytes_method(channel, http2.PREDICT)
        request = request_to_read(str(pipe)) + unknown_field
        options = {"timeout": 60, "compression": grpc.Compression.Gzip}
        calls = [predict.future(request, **options) for _ in range(2)]
        wait_until(lambda: any(call.done() for call in calls))
        (refused,) = (call for call in calls if call.done())
        (running,) = (call for call in calls if not call.done())
        assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "--max_rest_bytes" in refused.details()
        pipe.write_bytes(b"")
        assert running.code() == grpc.StatusCode.INVALID_ARGUMENT
        again = predict.future(request_to_read(__file__) + unknown_field, **options)
        assert again.code() == grpc.StatusCode.OK


def test_many_bombs_wait_compressed_and_others_are_answered(target, tmp_path):
    pipe, bomb = tmp_path / "pipe", make_bomb()
    os.mkfifo(pipe)
    with grpc.insecure_channel(target.target) as channel, ExitStack() as connections:
        predict = bytes_method(channel, http2.PREDICT)
        (tmp_path / "file").write_bytes(b"123")
        predict(request_to_read(str(tmp_path / "file")), timeout=60)
        meter = ProcessMeter(target.pid)
        before = meter.peak_memory_bytes()
        first = predict.future(request_to_read(str(pipe)), timeout=60)  # occupies the worker
        ask_for_status(channel)
        waiting = [
            connections.enter_context(send_compressed(target.target, bomb))
            for _ in range(NUM_BOMBS)
        ]
        for _ in range(20):
            ask_for_status(channel)
        pipe.write_bytes(b"")
        assert first.code() == grpc.StatusCode.INVALID_ARGUMENT  # TensorFlow refuses to read a pipe
        for connection in waiting:
            http2.read_to_end_of_stream(connection)
        assert predict(request_to_read(str(tmp_path / "file")), timeout=60)
    # Inflated, all messages would take 1 GB, but the server inflates one at a time.
    assert meter.peak_memory_bytes() - before < 3 * INFLATED
