"""What the attacks of test_http1.py cost another client: python -m tests.hostile.bench_http1.

Latencies of a Predict over REST, in milliseconds, alone and beside each attack, in turn; and how
much memory the server took. Wall times: only the ratios of one run mean something.
"""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from colcast.loadtest.beside import BESIDE, GoingOn, alone_and_beside
from colcast.loadtest.variants import measure_variants
from colcast.server import ServerProcess

from .. import models
from .test_http1 import ATTACKS, flood
from .test_rest import check_served

SECONDS, MIN_REQUESTS = 3, 100


@contextmanager
def attacked(server: ServerProcess, attack: tuple[bytes, bytes]) -> Iterator[GoingOn]:
    """While the attack is repeated."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            flood(server, *attack, stop)

    attacker = threading.Thread(target=repeat)
    attacker.start()
    yield GoingOn()
    stop.set()
    attacker.join()


def main() -> None:
    """Prints two lines per attack."""
    with tempfile.TemporaryDirectory() as base_path:
        models.build("every_family", Path(base_path, "1"))
        flags = ["--rest_api_port=-1", f"--max_request_bytes={4 << 20}"]
        with ServerProcess("target", Path(base_path), flags) as server:
            check, seconds = partial(check_served, server), (SECONDS, SECONDS)
            groups = (
                (
                    name,
                    alone_and_beside(
                        check, partial(attacked, server, attack), server.pid, seconds, MIN_REQUESTS
                    ),
                )
                for name, attack in ATTACKS.items()
            )
            measure_variants(groups, 1, BESIDE)


if __name__ == "__main__":
    main()
