"""Limits of a request: its bytes, columns, rows and expansion."""

import gzip

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.zoo.saving import with_defaults
from tensorflow.core.framework import tensor_pb2

MIB = 1 << 20
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED

FLAGS = [
    f"--max_request_bytes={MIB}",
    "--max_request_columns=5",
    "--max_request_rows=150000",
    f"--max_expanded_bytes={4 * MIB}",
]


@pytest.fixture(scope="module")
def limited_stubs(serve, ranker_base_path):
    return serve(ranker_base_path, *FLAGS)


def error_of(call):
    """The code and the message with which a call ended."""
    return call.code(), call.details()


@pytest.fixture
def expect_refused(limited_stubs, ranker_inputs):
    """Checks that a request is refused with these words and takes no memory; the next is served."""

    def check(request, *words, **call):
        # The first request may allocate memory that the server keeps.
        assert limited_stubs.predict(ranker_inputs)["score"].tolist() == [201, 202, 203]
        meter = ProcessMeter(limited_stubs.server.pid)
        before = meter.peak_memory_bytes()
        code, details = error_of(
            limited_stubs.prediction.Predict.future(request, timeout=60, **call)
        )
        assert code == EXHAUSTED, details
        assert all(word in details for word in words), details
        assert meter.peak_memory_bytes() - before < 32 * MIB
        assert limited_stubs.predict(ranker_inputs)["score"].tolist() == [201, 202, 203]

    return check


def test_a_request_may_have_as_many_bytes_as_the_flag_allows(
    limited_stubs, ranker_inputs, expect_refused
):
    request = limited_stubs.request(ranker_inputs | {"user_name": [""]})
    too_long = MIB - request.ByteSize() + 1
    expect_refused(limited_stubs.request(ranker_inputs | {"user_name": ["x" * too_long]}), str(MIB))
    room = MIB // 2
    assert limited_stubs.predict(ranker_inputs | {"user_name": ["x" * room]})["score"].size == 3


def test_random_bytes_survive_compression(limited_stubs, ranker_inputs):
    """Decompressing the message takes many blocks of input and of output."""
    names = [np.random.default_rng(i).bytes(200_000) for i in range(3)]
    request = limited_stubs.request(ranker_inputs | {"item_name": names})
    answer = limited_stubs.prediction.Predict(
        request, timeout=60, compression=grpc.Compression.Gzip
    )
    assert tf.make_ndarray(answer.outputs["tag"]).tolist() == [b"a:" + name for name in names]


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_a_bomb_is_refused_before_it_is_inflated(
    limited_stubs, ranker_inputs, expect_refused, compression
):
    """96 MiB of zeros are 96 KiB compressed."""
    bomb = limited_stubs.request(ranker_inputs | {"user_name": ["\0" * (96 * MIB)]})
    assert len(gzip.compress(bomb.SerializeToString())) < MIB // 2
    expect_refused(bomb, str(MIB), compression=compression)


def test_compressed_bytes_that_do_not_inflate_are_an_error(limited_stubs, ranker_inputs):
    with grpc.insecure_channel(limited_stubs.server.target) as channel:
        predict = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        # The message is marked as compressed but is not; the metadata names the encoding.
        call = predict.future(b"no gzip", timeout=60, metadata=[("grpc-encoding", "gzip")])
        assert call.code() != grpc.StatusCode.OK
    assert limited_stubs.predict(ranker_inputs)["score"].size == 3


def test_columns_beyond_the_limit_are_refused(limited_stubs, ranker_inputs, expect_refused):
    more = {f"column{i}": [1.0] for i in range(2)}
    expect_refused(limited_stubs.request(ranker_inputs | more), "5 inputs", "max_request_columns")


def test_rows_beyond_the_limit_are_refused(limited_stubs, ranker_inputs, expect_refused):
    item = short_list(tf.float32.as_datatype_enum, 150_001, float_val=[1.0])
    request = limited_stubs.request(ranker_inputs | {"item_name": ["x"]})
    request.inputs["item"].CopyFrom(item)
    expect_refused(request, "150001 rows", "max_request_rows is 150000")


def test_a_long_string_repeated_counts_with_its_bytes(limited_stubs, ranker_inputs, expect_refused):
    """The long string would be copied to every row."""
    inputs = ranker_inputs | {
        "item": np.zeros(100, np.float32),
        "item_name": ["x"] * 100,
        "user_name": ["u" * 100_000],
    }
    words = ['most of them input "user_name"', f"max_expanded_bytes is {4 * MIB}"]
    expect_refused(limited_stubs.request(inputs), *words)


def short_list(text_dtype, rows, **values):
    """A TensorProto that declares `rows` rows but has fewer values."""
    proto = tensor_pb2.TensorProto(dtype=text_dtype, **values)
    proto.tensor_shape.dim.add(size=rows)
    return proto


def test_the_last_string_of_a_short_list_counts_with_its_bytes(
    limited_stubs, ranker_inputs, expect_refused
):
    request = limited_stubs.request(ranker_inputs)
    request.inputs["item"].CopyFrom(short_list(tf.float32.as_datatype_enum, 100, float_val=[1.0]))
    request.inputs["item_name"].CopyFrom(
        short_list(tf.string.as_datatype_enum, 100, string_val=[b"x", b"y" * 100_000])
    )
    expect_refused(request, '"item_name"', "max_expanded_bytes")


class Defaulted(tf.Module):
    """A model whose user input of 4 kB has a default."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.float32, "item"),
            tf.TensorSpec([None, 1000], tf.float32, "user"),
        ]
    )
    def score(self, item, user):
        return {"score": tf.reduce_sum(tf.concat([item[:, None], user], 1), axis=1)}


def test_a_default_that_is_repeated_counts(serve, tmp_path):
    """The repeated default counts, although the request does not contain it."""
    module = Defaulted()
    tf.saved_model.save(module, str(tmp_path / "1"), signatures=module.score)
    with_defaults(tmp_path / "1", "serving_default", {"user": np.zeros((1, 1000))})
    stubs = serve(tmp_path, *FLAGS)
    assert stubs.predict({"item": np.ones(1000, np.float32)})["score"].size == 1000
    request = stubs.request({"item": np.ones(1100, np.float32)})
    call = stubs.prediction.Predict.future(request, timeout=60)
    assert call.code() == EXHAUSTED
    assert '"user"' in call.details()
