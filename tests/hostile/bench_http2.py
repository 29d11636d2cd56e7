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
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import grpc
from colcast.loadtest.beside import GREW, GoingOn, alone_and_beside
from colcast.loadtest.variants import P99, Column, Variant, measure_variants, other

from .conftest import serving_nothing
from .http2_attacks import ATTACKS, HEALTH

SECONDS, MIN_CALLS = 2, 300
ENDS = "connections"


@contextmanager
def attacked(name: str, target: str, core: int) -> Iterator[GoingOn]:
    """While another process attacks."""
    command = [sys.executable, "-m", "tests.hostile.http2_attacker", name, target, str(core)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as attacker:
        assert attacker.stdout is not None
        attacker.stdout.readline()
        going_on = GoingOn()
        yield going_on
        attacker.terminate()
        going_on.told[ENDS] = attacker.stdout.read().strip()


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
            check = partial(channel.unary_unary(HEALTH), b"", timeout=60)
            attack, seconds = partial(attacked, name, server.target, core), (SECONDS, SECONDS)
            yield name, alone_and_beside(check, attack, server.pid, seconds, MIN_CALLS)


def main() -> None:
    """Prints two lines per attack."""
    busy = Column("server's CPU", lambda it: it.server_cpu_seconds / it.wall_seconds)
    columns = (P99, busy, GREW, other(ENDS, "", over=max))
    measure_variants(groups(sys.argv[1:] or list(ATTACKS)), 1, columns)


if __name__ == "__main__":
    main()
