"""Limits of a request, and a server without memory for one: others are answered."""

import http.client
import json
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess
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
OF_BYTES = [f"{MIB} (--max_request_bytes)"]
OF_EXPANSION = f"max_expanded_bytes is {4 * MIB}"


@pytest.mark.parametrize(
    ("change", "words", "compression"),
    [
        ({"user_name": ["x" * MIB]}, OF_BYTES, grpc.Compression.NoCompression),
        (ZEROS, OF_BYTES, grpc.Compression.Gzip),
        (ZEROS, OF_BYTES, grpc.Compression.Deflate),
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


def test_rows_over_rest_have_the_same_limit(limited_stubs, ranker_inputs):
    connection = http.client.HTTPConnection(limited_stubs.server.rest_target, timeout=120)
    body = json.dumps({"inputs": ranker_inputs | {"item": [0] * 150_001, "item_name": ["x"]}})
    connection.request("POST", f"/v1/models/{limited_stubs.model}:predict", body)
    answer = connection.getresponse()
    assert answer.status == 429
    assert b"max_request_rows is 150000" in answer.read()


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


@pytest.fixture(name="totals", scope="module")
def _totals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose allocator returns freed memory immediately, so its peak is what it holds."""
    base_path = tmp_path_factory.mktemp("totals")
    models.build("totals", base_path / "1")
    flags = ["--rest_api_port=-1", "--rest_api_timeout_in_ms=0"]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
        with ServerProcess("totals", base_path, flags) as server:
            yield server


@pytest.mark.parametrize("key", ["inputs", "instances"])
@pytest.mark.parametrize(
    ("signature", "value", "factor"),
    [
        ("floats", b"0.25", 2.2),
        ("floats", b"0", 4.4),  # 2 bytes of text become 4 in the column and 4 in the tensor
        ("integers", b"1234567", 2.4),
        ("integers", b"7", 8.4),  # 2 bytes of text become 8 and 8
        ("texts", b'"some text"', 3.4),  # each string in the tensor takes 24 bytes
    ],
)
def test_a_rest_body_takes_a_small_multiple_of_its_size(
    totals: ServerProcess, key: str, signature: str, value: bytes, factor: float
) -> None:
    def ask(size: int) -> int:
        row = b"[" + b",".join([value] * TOTALS_WIDTH) + b"]"
        rows = b",".join([row] * (size // len(row)))
        body = b'{"signature_name": "%b", "%b": [%b]}' % (signature.encode(), key.encode(), rows)
        connection = http.client.HTTPConnection(totals.rest_target, timeout=300)
        connection.request("POST", "/v1/models/totals:predict", body)
        response = connection.getresponse()
        response.read()
        connection.close()
        assert response.status == 200
        return len(body)

    ask(len(value) * TOTALS_WIDTH * 4)  # the first request may allocate memory that stays
    meter = ProcessMeter(totals.pid)
    before = meter.memory_bytes()
    meter.forget_peak()
    size = ask(48_000_000)
    assert meter.peak_memory_bytes() - before < factor * size
