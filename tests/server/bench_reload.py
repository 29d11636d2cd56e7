"""What requests feel of a reload: python -m tests.server.bench_reload.

A model of 300 MB is reloaded every 5 s under load at half the server's capacity, twice for a
minute, in turn with as long without reloads. Requests come as a Poisson process and latencies count
from the time a request was due.
"""

import argparse
import itertools
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import tensorflow as tf
from colcast.client import encode_predict_request
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Request
from colcast.loadtest.open_loop import LATE_MS, OpenLoop
from colcast.loadtest.recording import Recording, percentile_ms
from colcast.loadtest.schedule import poisson
from colcast.loadtest.variants import ERRORS, LATENCY, Column, Variant, measure_variants
from colcast.server import ServerProcess

DIMENSION = 64
CANDIDATES = 500
LATE = Column("late p99 ms", lambda it: percentile_ms(it.lateness, 99), over=max)
COLUMNS = (*LATENCY, ERRORS, LATE)


class Ranker(tf.Module):
    """An embedding table, nearly all of the model, and a tower of dense layers."""

    def __init__(self, megabytes: int) -> None:
        super().__init__()
        random = tf.random.Generator.from_seed(1)
        self.rows = megabytes * 1_000_000 // (4 * DIMENSION)
        self.table = tf.Variable(random.normal([self.rows, DIMENSION]))
        sizes = [2 * DIMENSION, 256, 64, 1]
        self.kernels = [
            tf.Variable(random.normal([a, b]) / a**0.5) for a, b in itertools.pairwise(sizes)
        ]

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.int64, "user"),
            tf.TensorSpec([None], tf.int64, "item"),
        ]
    )
    def score(self, user: tf.Tensor, item: tf.Tensor) -> dict[str, tf.Tensor]:
        """Scores rows; both inputs have the same number of rows."""
        both = [tf.gather(self.table, ids % self.rows) for ids in (user, item)]
        hidden = tf.concat(both, 1)
        for kernel in self.kernels:
            hidden = tf.nn.relu(hidden @ kernel)
        return {"score": hidden[:, 0]}


def make_requests(count: int) -> list[Request]:
    """One user and CANDIDATES items each."""
    random = np.random.default_rng(1)
    requests = []
    for _ in range(count):
        ids = {
            name: random.integers(0, 1 << 40, rows)
            for name, rows in (("user", 1), ("item", CANDIDATES))
        }
        payload = encode_predict_request("ranker", "serving_default", ids)
        requests.append(Request(payload, CANDIDATES))
    return requests


@contextmanager
def reloading(base_path: Path, every_seconds: float) -> Iterator[None]:
    """Meanwhile, every so often, the model appears as a version one higher.

    The files are links to those of the version before, so that nothing but the server works.
    """
    stop = threading.Event()

    def publish() -> None:
        while not stop.wait(every_seconds):
            newest = max(base_path.iterdir(), key=lambda path: int(path.name))
            beside = base_path.with_name("beside")
            shutil.copytree(newest, beside, copy_function=os.link)
            beside.rename(base_path / str(int(newest.name) + 1))
            for old in base_path.iterdir():
                if int(old.name) < int(newest.name):
                    shutil.rmtree(old)

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def variants(
    base_path: Path, server: ServerProcess, seconds: float, every_seconds: float
) -> tuple[str, list[Variant]]:
    """At half the capacity: in peace for half as long before and after, and while reloading."""
    requests = make_requests(64)
    with ClosedLoop(server.target, clients=2 * (os.cpu_count() or 1)) as clients:
        clients.run(requests, seconds=2)
        rate = clients.run(requests, seconds=5).per_second / 2

    def run(part: float, seed: int) -> Recording:
        return OpenLoop(server.target).run(requests, poisson(rate, seconds * part, 64, seed))

    def steady(number: int) -> Recording:
        return run(0.5, seed=1 + 2 * number) if number >= 0 else Recording()

    def reloaded(number: int) -> Recording:
        if number < 0:
            return Recording()
        with reloading(base_path, every_seconds):
            return run(0.5, seed=2 + 2 * number)

    return f"{rate:.0f} per second", [Variant("steady", steady), Variant("reloading", reloaded)]


def main(argv: list[str] | None = None) -> int:
    """Prints the figures; 1 if a request failed or nothing was reloaded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=120, help="of reloading")
    parser.add_argument("--every", type=float, default=5, help="seconds between reloads")
    parser.add_argument(
        "--server-flag", action="append", default=[], help="such as --num_workers=2"
    )
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        base_path = Path(folder, "ranker")
        module = Ranker(args.megabytes)
        tf.saved_model.save(module, str(base_path / "1"), signatures=module.score)
        with ServerProcess("ranker", base_path, args.server_flag) as server:
            group = variants(base_path, server, args.seconds, args.every)
            lines = measure_variants([group], 2, COLUMNS)
            loads = len(re.findall(r"version \d+: serving", server.log())) - 1
    print(f"{loads} reloads")
    if max(line.figures[LATE.heading] for line in lines) > LATE_MS:
        print("The generator was late: the figures are partly its own.")
    return int(loads == 0 or any(line.figures["errors"] for line in lines))


if __name__ == "__main__":
    sys.exit(main())
