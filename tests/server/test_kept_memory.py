"""What a message was decoded to takes no memory once it is answered, whatever others wait."""

import grpc
import numpy as np
import pytest
from colcast.client.wire import varint
from colcast.server import ServerProcess

from .. import models
from .metrics_page import Metrics

MB = 1 << 20


def test_requests_that_wait_keep_nothing_of_the_large_ones_before(tmp_path, connect, monitoring):
    base = tmp_path / "model"
    models.build("weighted", base / "1")
    parameters = tmp_path / "batching"
    parameters.write_text("batch_timeout_micros { value: 100000000 }")  # longer than the test
    flags = ["--num_workers=1", "--enable_batching", f"--batching_parameters_file={parameters}"]
    flags.append(f"--max_request_columns={4 * MB}")
    with ServerProcess("ranker", base, [*monitoring, *flags]) as server:
        stubs = connect(server.target)
        small = stubs.request({"x": np.float32([1])}).SerializeToString()
        parts = b"\x12\x04\x08\x07\x42\x00" * (2 * MB)  # of one TensorProto: a view of each, 64 MB
        entry = b"\x0a\x05texts" + parts
        large = small + b"\x12" + varint(len(entry)) + entry
        send = stubs.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        before = Metrics(server).value("process_resident_memory_bytes")
        waiting = []
        for _ in range(16):
            with pytest.raises(grpc.RpcError, match="texts"):
                send(large, timeout=60)
            # Decoded where the large one was, all but its second input.
            waiting.append(send.future(small, timeout=60))
        after = Metrics(server).value("process_resident_memory_bytes")
        assert not any(call.done() for call in waiting)
        for call in waiting:
            call.cancel()
    assert after - before < 500 * MB
