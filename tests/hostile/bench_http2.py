"""What attacks over HTTP/2 cost another client: python -m tests.hostile.bench_http2 [ATTACK...].

p99 of another client's calls beside each attack, against the seconds before it; how much memory
the server took; how the attacker's connections ended. The attacker has one core, and the server and
the other client have the others. Wall times: only the ratios of one run mean something.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import grpc
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.recording import Recording
from colcast.loadtest.variants import (
    P99,
    Column,
    Variant,
    for_seconds,
    measure_variants,
    one_by_one,
    other,
)
from colcast.server import ServerProcess

from .conftest import serving_nothing
from .http2_attacks import ATTACKS, HEALTH

SECONDS, MIN_CALLS = 2, 300
GREW, ENDS = "memory, MB", "connections"


def variants(name: str, server: ServerProcess, channel: grpc.Channel, core: int) -> list[Variant]:
    """Another client's calls alone and beside the attack."""
    check = partial(channel.unary_unary(HEALTH), b"", timeout=60)
    command = [sys.executable, "-m", "tests.hostile.http2_attacker", name, server.target, str(core)]

    def alone(_: int) -> Recording:
        return one_by_one(check, for_seconds(SECONDS, MIN_CALLS), ProcessMeter(server.pid))

    def beside(number: int) -> Recording:
        if number < 0:
            return Recording()
        before = ProcessMeter(server.pid).memory_bytes()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as attacker:
            assert attacker.stdout is not None
            attacker.stdout.readline()
            found = alone(number)
            grown = max(0, ProcessMeter(server.pid).memory_bytes() - before)
            attacker.terminate()
            found.others = {GREW: grown / 1e6, ENDS: attacker.stdout.read().strip()}
        return found

    return [Variant("alone", alone), Variant("beside it", beside)]


def groups(names: Sequence[str]) -> Iterator[tuple[str, list[Variant]]]:
    """Every attack on a server of its own."""
    core, *others = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(others))  # the server's, too
    for name in names:
        with (
            tempfile.TemporaryDirectory() as folder,
            serving_nothing(Path(folder)) as server,
            grpc.insecure_channel(server.target) as channel,
        ):
            yield name, variants(name, server, channel, core)


def main() -> None:
    """Prints two lines per attack."""
    busy = Column("server's CPU", lambda it: it.server_cpu_seconds / it.wall_seconds)
    columns = (P99, busy, other(GREW, ".0f"), other(ENDS, "", over=max))
    measure_variants(groups(sys.argv[1:] or list(ATTACKS)), 1, columns)


if __name__ == "__main__":
    main()
