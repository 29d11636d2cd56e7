"""Bytes that are no PredictRequest: refused where protobuf refuses, with the place named."""

import tarfile
from pathlib import Path

import pytest
from colcast.client.wire import field, varint
from google.protobuf.message import DecodeError
from tensorflow_serving.apis import predict_pb2

CORPUS = Path(__file__).parent / "corpus" / "wire.tar.gz"


def one_input(name: bytes, tensor: bytes) -> bytes:
    """An entry of PredictRequest.inputs."""
    return field(2, field(1, name) + field(2, tensor))


SPEC = field(1, field(1, b"target"))
GROUPS = 200


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b"\xff" * 10, ["malformed PredictRequest", "byte 0"]),
        (b"\x00", ["field number 0"]),
        (b"\x0e\x01", ["unknown wire type"]),
        (SPEC + b"\x12\xff\xff\xff\xff\x07", ["inputs", "length goes past the end"]),
        (SPEC + b"\x12\xff\xff\xff\xff\xff\x01", ["inputs", "length longer than 5 bytes"]),
        (SPEC + b"\x98\x06" + b"\x80" * 10 + b"\x01", ["varint longer than 10 bytes"]),
        (SPEC + one_input(b"age", b"\x52\x01\x80"), ['inputs["age"].value.int64_val']),
        (SPEC + one_input(b"age", b"\x2a\x03abc"), ['inputs["age"].value.float_val', "3 bytes"]),
        (SPEC + one_input(b"age", b"\x12\x02\x12\x05"), ['inputs["age"].value.tensor_shape.dim']),
        (SPEC + one_input(b"a\xffge", b""), ["inputs.key", "UTF-8"]),
        (field(1, field(1, b"\xc3(")), ["model_spec.name", "UTF-8"]),
        (SPEC + field(3, b"\xed\xa0\x80"), ["output_filter", "UTF-8"]),
        (SPEC + b"\x0b" * GROUPS + b"\x0c" * GROUPS, ["nested too deep"]),
        (SPEC + b"\x0c", ["end of a group"]),
    ],
)
def test_says_what_is_malformed_and_where(expect_refused, message, words):
    with pytest.raises(DecodeError):
        predict_pb2.PredictRequest.FromString(message)
    expect_refused(message, "INVALID_ARGUMENT", "malformed PredictRequest", *words)


def test_every_truncation_is_judged_as_protobuf_judges_it(client, good_request):
    message = good_request.SerializeToString(deterministic=True)
    for size in range(len(message)):
        prefix = message[:size]
        code, details = client.error_of(prefix)
        try:
            predict_pb2.PredictRequest.FromString(prefix)
        except DecodeError:
            assert (code, "malformed PredictRequest" in details) == ("INVALID_ARGUMENT", True)
        else:
            assert "malformed" not in details, (size, details)
    client.send(message)


def test_a_cut_off_input_is_named(expect_refused, good_request):
    spec = predict_pb2.PredictRequest(model_spec=good_request.model_spec).SerializeToString()
    entry = predict_pb2.PredictRequest(inputs={"age": good_request.inputs["age"]})
    message = spec + entry.SerializeToString()
    expect_refused(message[:-1], "INVALID_ARGUMENT", 'inputs["age"]', "length goes past the end")


def test_unknown_fields_are_skipped(client, good_request):
    unknown = varint(99 << 3) + varint(7) + field(100, b"later") + b"\x0b\x0c"
    message = unknown + good_request.SerializeToString() + unknown
    assert len(client.send(message).outputs["score"].float_val) == 3


def test_no_input_of_the_fuzz_corpus_upsets_the_server(client, good_request, server):
    """Inputs whose second byte is even hold a message from their third byte on."""
    with tarfile.open(CORPUS) as kept:
        inputs = [file.read() for entry in kept if (file := kept.extractfile(entry))]
    messages = [data[2:] for data in inputs if len(data) > 2 and data[1] % 2 == 0]
    assert messages
    codes = {client.code_of(message) for message in messages}
    assert codes <= {"OK", "INVALID_ARGUMENT", "NOT_FOUND"}, server.log()
    assert client.send(good_request.SerializeToString()).outputs
