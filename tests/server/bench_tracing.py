"""Server CPU per request with tracing off, on and not sampled, at 1 % and at 100 %, in turn.

python -m tests.server.bench_tracing [ROUNDS]
"""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from colcast.client import encode_predict_request
from colcast.loadtest.ways import predicting, print_ways
from colcast.server import ServerProcess

from . import parts_model
from .test_tracing import Collector

REQUESTS = 1000


def main(rounds: int) -> None:
    """Prints a line for each setting."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        parts_model.save(Path(folder) / "model" / "1")
        collector = Collector()
        stack.callback(collector.close)
        traced = f"--trace_endpoint={collector.url}"
        settings = {"off": [], "ratio 0": [traced]}
        for ratio in (0.01, 1):
            settings[f"ratio {ratio}"] = [traced, f"--trace_sampling_ratio={ratio}"]
        inputs = parts_model.inputs(np.random.default_rng(1), 1, 20)
        request = encode_predict_request("ranker", "columnar_late", inputs)
        ways = [
            predicting(
                name,
                stack.enter_context(ServerProcess("ranker", Path(folder) / "model", flags)),
                [request],
                REQUESTS,
            )
            for name, flags in settings.items()
        ]
        print_ways("Server CPU per request, and as a share of tracing off", ways, rounds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
