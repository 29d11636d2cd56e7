"""A server that finds no memory for one request answers so, and goes on with the others."""

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess

MB = 1 << 20


class Zeros(tf.Module):
    """As many zeros as it is asked for."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64, "count")])
    def zeros(self, count: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"zeros": tf.zeros([count])}


@pytest.fixture(name="server")
def _server(tmp_path: Path, monitoring: list[str]) -> Iterator[ServerProcess]:
    model = Zeros()
    tf.saved_model.save(model, str(tmp_path / "1"), signatures=model.zeros)
    with ServerProcess("ranker", tmp_path, [*monitoring, "--num_workers=1"]) as server:
        yield server


def leave(server: ServerProcess, megabytes: int) -> None:
    """So much more address space the server may have than it has now."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    used = next(int(line.split()[1]) for line in status.splitlines() if "VmSize" in line)
    limit = used * 1024 + megabytes * MB
    resource.prlimit(server.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def test_an_answer_that_finds_no_memory_fails_and_the_server_goes_on(server, connect):
    stubs = connect(server.target)

    def ask(count: int) -> Any:
        return stubs.predict({"count": np.int64(count)})["zeros"]

    assert len(ask(10)) == 10
    leave(server, 600)  # for the output, and not for the answer as it is sent, too
    for _ in range(3):
        with pytest.raises(grpc.RpcError) as failed:
            ask(400 * MB // 4)
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "no memory left for the request" in failed.value.details()
        assert len(ask(10)) == 10
