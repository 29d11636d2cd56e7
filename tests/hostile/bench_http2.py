"""What attacks over HTTP/2 cost another client: python -m tests.hostile.bench_http2 [ATTACK...].

p99 of another client's calls beside each attack, against the seconds before it; how much memory
the server took; how the attacker's connections ended. The attacker has one core, and the server and
the other client have the others. Wall times: only the ratios of one run mean something.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grpc
import numpy as np
from colcast.loadtest.process import ProcessMeter
from colcast.server import ServerProcess
from rich.console import Console
from rich.table import Table

from .conftest import serving_nothing
from .http2_attacks import ATTACKS, HEALTH

SECONDS, MIN_CALLS = 2, 300


def latencies(channel: grpc.Channel) -> np.ndarray:
    """Milliseconds per call."""
    check = channel.unary_unary(HEALTH)
    times: list[float] = []
    end = time.monotonic() + SECONDS
    while len(times) < MIN_CALLS or time.monotonic() < end:
        begin = time.perf_counter()
        check(b"", timeout=60)
        times.append(1000 * (time.perf_counter() - begin))
    return np.array(times)


def measure(name: str, server: ServerProcess, channel: grpc.Channel, core: int) -> list[str]:
    """The row of one attack."""
    alone = np.percentile(latencies(channel), 99)
    before = ProcessMeter(server.pid).memory_bytes()
    command = [sys.executable, "-m", "tests.hostile.http2_attacker", name, server.target, str(core)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as attacker:
        assert attacker.stdout is not None
        attacker.stdout.readline()
        beside = np.percentile(latencies(channel), 99)
        grown = max(0, ProcessMeter(server.pid).memory_bytes() - before)
        attacker.terminate()
        ends = attacker.stdout.read().strip()
    figures = [f"{alone:.2f}", f"{beside:.2f}", f"{beside / alone:.1f}", f"{grown / 1e6:.0f}"]
    return [name, *figures, ends]


def main() -> int:
    """Prints a line per attack."""
    names = sys.argv[1:] or list(ATTACKS)
    core, *others = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(others))  # the server's, too
    table = Table("attack", "p99 alone, ms", "p99", "times", "memory, MB", "connections")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            with (
                serving_nothing(Path(folder)) as server,
                grpc.insecure_channel(server.target) as channel,
            ):
                table.add_row(*measure(name, server, channel, core))
    Console(width=140).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
