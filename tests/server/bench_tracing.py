"""Server CPU per request with tracing off, on and not sampled, at 1 % and at 100 %, in turn.

python -m tests.server.bench_tracing [ROUNDS]
"""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from colcast.server import ServerProcess

from . import parts_model
from .conftest import Stubs
from .metrics_page import Metrics
from .test_tracing import Collector

REQUESTS = 1000


def main(rounds: int) -> None:
    """Prints a line for each setting: the median over rounds, and as a ratio to off."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        parts_model.save(Path(folder) / "model" / "1")
        config = Path(folder) / "monitoring"
        config.write_text("prometheus_config { enable: true }")
        collector = Collector()
        stack.callback(collector.close)
        common = ["--rest_api_port=-1", f"--monitoring_config_file={config}"]
        traced = [*common, f"--trace_endpoint={collector.url}"]
        servers = {"off": common, "ratio 0": traced}
        for ratio in (0.01, 1):
            servers[f"ratio {ratio}"] = [*traced, f"--trace_sampling_ratio={ratio}"]
        running = {
            name: stack.enter_context(ServerProcess("ranker", Path(folder) / "model", flags))
            for name, flags in servers.items()
        }
        stubs = {name: Stubs(server.target) for name, server in running.items()}
        inputs = parts_model.inputs(np.random.default_rng(1), 1, 20)
        request = stubs["off"].request(inputs, signature_name="columnar_late")
        cpu: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(rounds + 1):  # the first warms up
            for name, server in running.items():
                before = Metrics(server).value("process_cpu_seconds_total")
                for _ in range(REQUESTS):
                    stubs[name].prediction.Predict(request)
                cpu[name].append(Metrics(server).value("process_cpu_seconds_total") - before)
        for name, seconds in cpu.items():
            median = np.median(seconds[1:]) / REQUESTS * 1e6
            ratio = np.median(np.array(seconds[1:]) / np.array(cpu["off"][1:]))
            print(f"{name:12} {median:7.1f} us per request, {ratio:.3f} of off")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
