"""Limits of a request, and a server without memory for one: others are answered."""

import http.client
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.zoo.saving import independent_rows, with_defaults, with_record
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import predict_pb2

from .. import models
from ..models._served import TOTALS_WIDTH
from .servers import Stubs

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


def peak_memory(stubs: Stubs) -> int:
    return ProcessMeter(stubs.server.pid).peak_memory_bytes()


def short_list(dtype: tf.DType, rows: int, **values: Any) -> tensor_pb2.TensorProto:
    """A TensorProto that declares `rows` rows but has fewer values."""
    proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum, **values)
    proto.tensor_shape.dim.add(size=rows)
    return proto


ZEROS = {"user_name": ["\0" * (96 * MIB)]}  # 96 KiB compressed
LONG = {"item": np.zeros(100, np.float32), "item_name": ["x"] * 100, "user_name": ["u" * 100_000]}
LONG_LAST = {
    "item": short_list(tf.float32, 100, float_val=[1.0]),
    "item_name": short_list(tf.string, 100, string_val=[b"x", b"y" * 100_000]),
}
MANY = {"item": short_list(tf.float32, 150_001, float_val=[1.0]), "item_name": ["x"]}
OF_EXPANSION = f"max_expanded_bytes is {4 * MIB}"


@pytest.mark.parametrize(
    ("change", "words", "compression"),
    [
        ({"user_name": ["x" * MIB]}, [str(MIB)], grpc.Compression.NoCompression),
        (ZEROS, [str(MIB)], grpc.Compression.Gzip),
        (ZEROS, [str(MIB)], grpc.Compression.Deflate),
        ({"more": [1.0], "yet more": [1.0]}, ["5 inputs", "max_request_columns"], None),
        (MANY, ["150001 rows", "max_request_rows is 150000"], None),
        (LONG, ['most of them input "user_name"', OF_EXPANSION], None),  # a copy for each row
        (LONG_LAST, ['"item_name"', OF_EXPANSION], None),
    ],
    ids=["bytes", "gzip", "deflate", "columns", "rows", "user", "short list"],
)
def test_a_request_beyond_a_limit_is_refused_and_takes_no_memory(
    limited_stubs, ranker_inputs, change, words, compression
):
    # The first request may allocate memory that the server keeps.
    assert limited_stubs.predict(ranker_inputs)["score"].tolist() == [201, 202, 203]
    before = peak_memory(limited_stubs)
    inputs = {n: v for n, v in change.items() if not isinstance(v, tensor_pb2.TensorProto)}
    request = limited_stubs.request(ranker_inputs | inputs)
    for name in change.keys() - inputs.keys():
        request.inputs[name].CopyFrom(change[name])
    call = limited_stubs.prediction.Predict.future(request, timeout=120, compression=compression)
    assert call.code() == EXHAUSTED, call.details()
    assert all(word in call.details() for word in words), call.details()
    assert peak_memory(limited_stubs) - before < 32 * MIB
    assert limited_stubs.predict(ranker_inputs)["score"].tolist() == [201, 202, 203]


def test_random_bytes_survive_compression(limited_stubs, ranker_inputs):
    """Decompressing the message takes many blocks of input and of output."""
    names = [np.random.default_rng(i).bytes(200_000) for i in range(3)]
    request = limited_stubs.request(ranker_inputs | {"item_name": names})
    answer = limited_stubs.prediction.Predict(
        request, timeout=60, compression=grpc.Compression.Gzip
    )
    assert tf.make_ndarray(answer.outputs["tag"]).tolist() == [b"a:" + name for name in names]


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


@pytest.fixture(name="serve_limited")
def _serve_limited(serve: Any) -> Iterator[Callable[[Path], Stubs]]:
    """A function that serves models until the test ends; the test limits their address space."""
    pids = set()

    def serve_limited(base_path: Path) -> Stubs:
        stubs = serve(base_path, "--num_workers=1", "--rest_api_timeout_in_ms=0")
        pids.add(stubs.server.pid)
        return stubs

    yield serve_limited
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def leave(stubs: Stubs, megabytes: int) -> None:
    """Limits the server's address space to what it uses now, plus this."""
    pid = stubs.server.pid
    status = Path(f"/proc/{pid}/status").read_text()
    used = next(int(line.split()[1]) for line in status.splitlines() if "VmSize" in line)
    limit = used * 1024 + megabytes * MIB
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def test_an_answer_without_memory_fails_and_the_server_continues(serve_limited, tmp_path):
    models.build("zeros", tmp_path / "1")
    stubs = serve_limited(tmp_path)

    def ask(count: int) -> Any:
        return stubs.predict({"count": np.int64(count)})["zeros"]

    assert len(ask(10)) == 10
    # This suffices for the output, but not for both the output and the encoded answer.
    leave(stubs, 600)
    for _ in range(3):
        with pytest.raises(grpc.RpcError) as failed:
            ask(400 * MIB // 4)
        assert failed.value.code() is EXHAUSTED
        assert "no memory left for the request" in failed.value.details()
        assert len(ask(10)) == 10


WIDE = [tf.TensorSpec([None], tf.int64, "id"), tf.TensorSpec([None, 8], tf.float32, "user")]


class Wide(tf.Module):
    """A model whose hidden layer takes a kilobyte per row, from an id of eight bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.ones([8, 256]))

    def _hidden(self, id: tf.Tensor, user: tf.Tensor) -> tf.Tensor:
        return tf.tanh(tf.matmul(user, self.kernel)) + tf.cast(id, tf.float32)[:, tf.newaxis]

    @tf.function(input_signature=WIDE)
    def score(self, id: tf.Tensor, user: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"score": tf.reduce_sum(tf.nn.softmax(self._hidden(id, user), axis=0), axis=1)}

    @tf.function(input_signature=WIDE)
    def score_alone(self, id: tf.Tensor, user: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"score": tf.reduce_sum(tf.tanh(self._hidden(id, user)), axis=1)}


@pytest.fixture(name="wide", scope="module")
def _wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base_path = tmp_path_factory.mktemp("wide")
    model = Wide()
    tf.saved_model.save(model, str(base_path / "1"), signatures=model.score)
    return base_path


def of_rows(stubs: Stubs, rows: int) -> predict_pb2.PredictRequest:
    """A request of a few hundred bytes: one user, and one id that is declared as `rows` rows."""
    request = stubs.request({"user": np.ones([1, 8], np.float32)})
    request.inputs["id"].CopyFrom(short_list(tf.int64, rows, int64_val=[1]))
    return request


RUN_BYTES = f"--max_run_bytes={64 * MIB}"


def ask_rows(stubs: Stubs, *counts: int) -> None:
    """Sends requests of these numbers of rows, which must all be answered."""
    for rows in counts:
        answer = stubs.prediction.Predict(of_rows(stubs, rows), timeout=120)
        assert len(answer.outputs["score"].float_val) == rows


def test_a_small_request_for_too_much_memory_is_refused_before_it_runs(wide, serve):
    stubs = serve(wide, RUN_BYTES)
    attack = of_rows(stubs, 1 << 20)
    assert attack.ByteSize() < 553
    ask_rows(stubs, 20, 20, 100, 500)  # teaches the server the memory of a row
    before = peak_memory(stubs)
    for _ in range(3):
        with pytest.raises(grpc.RpcError) as failed:
            stubs.prediction.Predict(attack, timeout=60)
        assert failed.value.code() is EXHAUSTED
        assert "1048576 rows" in failed.value.details()
        assert f"--max_run_bytes is {64 * MIB}" in failed.value.details()
    assert peak_memory(stubs) - before < 64 * MIB
    ask_rows(stubs, 20)


def test_under_a_limit_of_address_space_attacks_end_with_an_error(wide, serve_limited):
    """Tests a small request that needs much memory, and compressed messages larger than memory."""
    stubs = serve_limited(wide)
    bomb = of_rows(stubs, 1 << 20)
    bomb.inputs["user"].CopyFrom(tf.make_tensor_proto(np.zeros([1 << 20, 8], np.float32)))
    ask_rows(stubs, 20, 20, 100, 500)
    leave(stubs, 600)
    for _ in range(3):
        with pytest.raises(grpc.RpcError) as failed:
            stubs.prediction.Predict(of_rows(stubs, 1 << 20), timeout=60)
        assert failed.value.code() is EXHAUSTED
        ask_rows(stubs, 1000)
    leave(stubs, 100)
    gzip = {"timeout": 120, "compression": grpc.Compression.Gzip}
    bombs = [stubs.prediction.Predict.future(bomb, **gzip) for _ in range(13)]
    for one in bombs:
        assert one.code() is EXHAUSTED
    ask_rows(stubs, 20)


def test_where_rows_are_independent_a_request_runs_in_pieces_that_fit(tmp_path, serve):
    model = Wide()
    tf.saved_model.save(model, str(tmp_path / "1"), signatures=model.score_alone)
    with_record(tmp_path / "1", {"serving_default": independent_rows("serving_default")})
    stubs = serve(tmp_path, RUN_BYTES)
    ask_rows(stubs, 20, 20, 100, 500)
    before = peak_memory(stubs)
    ask_rows(stubs, 1 << 19)
    assert peak_memory(stubs) - before < 256 * MIB  # a single run would need at least 512 MIB


def body_of(size: int, value: bytes) -> bytes:
    """A REST body of about `size` bytes for the model "totals"."""
    row = b"[" + b",".join([value] * TOTALS_WIDTH) + b"]"
    rows = b",".join([row] * max(1, size // (len(row) + 1)))
    return b'{"signature_name": "floats", "inputs": [%s]}' % rows


def test_a_body_without_memory_is_refused_and_the_server_continues(serve_limited, tmp_path):
    models.build("totals", tmp_path / "1")
    stubs = serve_limited(tmp_path)

    def ask(body: bytes) -> int:
        connection = http.client.HTTPConnection(stubs.server.rest_target, timeout=300)
        connection.request("POST", f"/v1/models/{stubs.model}:predict", body)
        response = connection.getresponse()
        said = response.read()
        connection.close()
        assert response.status in (200, 429), said
        return response.status

    short = body_of(1, b"0.25")
    assert ask(short) == 200
    leave(stubs, 150)
    for value in (b"0.25", b"0"):  # large as a body; large as columns
        for size in (250 * MIB, 90 * MIB):
            code = ask(body_of(size, value))
            assert code == 429 or size < 150 * MIB
            assert ask(short) == 200
