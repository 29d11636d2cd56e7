"""What the server does with memory that a request or a model no longer needs."""

from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.client.wire import varint
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess

from .. import models
from ..models.saving import save_version
from .metrics_page import Metrics

MIB = 1 << 20
PAGE = 4096
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


class Large(tf.Module):
    """Takes much memory: for each row of a request 16 KiB, and for itself what it is told."""

    def __init__(self, bytes_of_weights: int = 4) -> None:
        super().__init__()
        self.weights = tf.Variable(tf.ones(bytes_of_weights // 4))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def score(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """4096 x plus the first weight, added up one by one."""
        return {"sum": tf.cumsum(tf.tile(x[:, None], [1, 4096]), axis=1)[:, -1] + self.weights[0]}


def save(directory: Path, bytes_of_weights: int = 4) -> None:
    model = Large(bytes_of_weights)
    save_version(directory, model, model.score)


def page_faults(pid: int) -> int:
    """Pages the process has been given so far."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def huge_page_bytes(pid: int) -> int:
    """Memory of the process that lies on huge pages."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("AnonHugePages:"))


def test_the_next_request_reuses_the_memory_of_large_tensors(
    tmp_path: Path, connect, monkeypatch: pytest.MonkeyPatch
):
    """Of 16 MiB; and of 64 MiB, which lie in an arena of their own."""
    monkeypatch.setenv("MALLOC_CONF", "thp:never")  # huge pages would need fewer page faults
    save(tmp_path / "1")
    requests = 10
    with ServerProcess("large", tmp_path, ["--num_workers=1"]) as server:
        stubs = connect(server.target)

        def predict(rows: int) -> None:
            (total,) = set(stubs.predict({"x": np.ones(rows, np.float32)}, name="large")["sum"])
            assert total == 4097

        for rows in (1024, 4096):
            predict(rows)
            before = page_faults(server.pid)
            for _ in range(requests):
                predict(rows)
            of_one_tensor = rows * 4096 * 4 // PAGE
            assert page_faults(server.pid) - before < requests * of_one_tensor / 4


def test_a_models_tables_lie_on_huge_pages_and_it_gives_them_back_once_it_is_unloaded(
    tmp_path: Path, connect, wait_until, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MALLOC_CONF", "dirty_decay_ms:100")  # 10 s, if nothing is said
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")  # whose allocator keeps what it once had
    save(tmp_path / "1", 128 * MIB)
    flags = ["--file_system_poll_wait_seconds=1"]
    with ServerProcess("large", tmp_path, flags) as server:
        if "[never]" not in HUGE_PAGES.read_text():
            assert huge_page_bytes(server.pid) > 100 * MIB
        meter = ProcessMeter(server.pid)
        both = meter.memory_bytes()
        save(tmp_path / "2")
        stubs = connect(server.target)
        wait_until(lambda: stubs.states("large").get(1, ("",))[0] == "END")
        wait_until(lambda: meter.memory_bytes() < both - 100 * MIB)


def test_requests_that_wait_keep_nothing_of_the_large_ones_before(tmp_path, connect, monitoring):
    base = tmp_path / "model"
    models.build("weighted", base / "1")
    parameters = tmp_path / "batching"
    parameters.write_text("batch_timeout_micros { value: 100000000 }")  # longer than the test
    flags = ["--num_workers=1", "--enable_batching", f"--batching_parameters_file={parameters}"]
    flags.append(f"--max_request_columns={4 * MIB}")
    with ServerProcess("ranker", base, [*monitoring, *flags]) as server:
        stubs = connect(server.target)
        small = stubs.request({"x": np.float32([1])}).SerializeToString()
        parts = b"\x12\x04\x08\x07\x42\x00" * (2 * MIB)  # of one TensorProto, 64 MiB of views
        entry = b"\x0a\x05texts" + parts
        large = small + b"\x12" + varint(len(entry)) + entry
        send = stubs.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        before = Metrics(server).value("process_resident_memory_bytes")
        waiting = []
        for _ in range(8):
            with pytest.raises(grpc.RpcError, match="texts"):
                send(large, timeout=60)
            # Decoded where the large one was, all but its second input.
            waiting.append(send.future(small, timeout=60))
        after = Metrics(server).value("process_resident_memory_bytes")
        assert not any(call.done() for call in waiting)
        for call in waiting:
            call.cancel()
    assert after - before < 250 * MIB
