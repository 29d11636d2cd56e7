"""What the attacks of test_http1.py cost another client: python -m tests.hostile.bench_http1.

p50 and p99 of a Predict over REST, in milliseconds, alone and beside each attack, in turn; and how
much memory the server took. Wall times: only the ratios of one run mean something.
"""

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from colcast.loadtest.process import ProcessMeter
from colcast.server import ServerProcess
from rich.console import Console
from rich.table import Table

from .. import models
from .test_http1 import ATTACKS, flood
from .test_rest import check_served

SECONDS, MIN_REQUESTS, MAX_REQUESTS = 3, 100, 2000


def latencies(server: ServerProcess, attacker: threading.Thread | None) -> np.ndarray:
    """Milliseconds per request, as long as the attack lasts or for a few seconds."""
    times: list[float] = []
    end = time.monotonic() + SECONDS
    while len(times) < MIN_REQUESTS or (time.monotonic() < end and len(times) < MAX_REQUESTS):
        if attacker is not None and not attacker.is_alive() and times:
            break
        begin = time.perf_counter()
        check_served(server)
        times.append(1000 * (time.perf_counter() - begin))
    return np.array(times)


def beside(server: ServerProcess, attack: tuple[bytes, bytes]) -> np.ndarray:
    """The latencies while the attack is repeated."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            flood(server, *attack, stop)

    attacker = threading.Thread(target=repeat)
    attacker.start()
    times = latencies(server, attacker)
    stop.set()
    attacker.join()
    return times


def main() -> int:
    """Prints a line per attack."""
    table = Table(
        "attack", "p50 alone", "p50", "p99 alone", "p99", "p99, times alone", "memory, MB"
    )
    with tempfile.TemporaryDirectory() as base_path:
        models.build("every_family", Path(base_path, "1"))
        flags = ["--rest_api_port=-1", f"--max_request_bytes={4 << 20}"]
        with ServerProcess("target", Path(base_path), flags) as server:
            latencies(server, None)
            for name, attack in ATTACKS.items():
                before = ProcessMeter(server.pid).memory_bytes()
                alone, attacked = latencies(server, None), beside(server, attack)
                grown = (ProcessMeter(server.pid).peak_memory_bytes() - before) / 1e6
                figures = [*np.percentile(alone, [50, 99]), *np.percentile(attacked, [50, 99])]
                p50_alone, p99_alone, p50, p99 = figures
                table.add_row(
                    name,
                    *(f"{x:.1f}" for x in (p50_alone, p50, p99_alone, p99, p99 / p99_alone, grown)),
                )
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
