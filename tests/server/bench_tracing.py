"""Server CPU per request with tracing off, on and not sampled, at 1 % and at 100 %, in turn.

python -m tests.server.bench_tracing [ROUNDS]
"""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from colcast.client import encode_predict_request
from colcast.loadtest.server_variants import servers
from colcast.loadtest.variants import measure_variants, predicting

from ..models import stages_model
from .test_tracing import Collector

REQUESTS = 1000


def main(rounds: int) -> None:
    """Prints a line for each setting."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stages_model.save(Path(folder) / "1")
        collector = Collector()
        stack.callback(collector.close)
        traced = f"--trace_endpoint={collector.url}"
        settings = {"off": [], "not sampled": [traced]}
        for ratio in (0.01, 1):
            settings[f"sampled: {ratio:.0%}"] = [traced, f"--trace_sampling_ratio={ratio}"]
        inputs = stages_model.inputs(np.random.default_rng(1), 1, 20)
        request = encode_predict_request("ranker", "columnar_late", inputs)
        running = stack.enter_context(servers("ranker", Path(folder), *settings.values()))
        variants = [
            predicting(title, server, [request], REQUESTS)
            for title, server in zip(settings, running, strict=True)
        ]
        measure_variants([("tracing", variants)], rounds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
