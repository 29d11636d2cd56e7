"""What requests feel of a reload: python -m tests.server.bench_reload.

A model of 300 MB is reloaded every 5 s for two minutes under load at half the server's capacity.
Before and after, for half as long each, nothing is reloaded; p99 of both goes into one table.
Requests come as a Poisson process and latencies count from the time a request was due.
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
from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Request
from colcast.loadtest.open_loop import OpenLoop, kept_up
from colcast.loadtest.progress import progress_bar
from colcast.loadtest.recording import Recording, percentile_ms
from colcast.loadtest.schedule import poisson
from colcast.server import ServerProcess
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from tensorflow_serving.apis import predict_pb2

DIMENSION = 64
CANDIDATES = 500


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
        message = predict_pb2.PredictRequest()
        message.model_spec.name = "ranker"
        for name, rows in (("user", 1), ("item", CANDIDATES)):
            ids = random.integers(0, 1 << 40, rows)
            message.inputs[name].CopyFrom(tf.make_tensor_proto(ids))
        requests.append(Request(message.SerializeToString(), CANDIDATES))
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


def measure(
    base_path: Path, server: ServerProcess, seconds: float, every_seconds: float, console: Console
) -> tuple[float, Recording, Recording]:
    """The capacity in requests per second, what was recorded in peace, and while reloading."""
    requests = make_requests(64)
    with progress_bar(console, "reload", steps=4) as step:
        with ClosedLoop(server.target, clients=2 * (os.cpu_count() or 1)) as clients:
            clients.run(requests, seconds=2)
            capacity = clients.run(requests, seconds=5).per_second
        step()
        loop = OpenLoop(server.target)

        def run(part: float, seed: int) -> Recording:
            recording = loop.run(requests, poisson(capacity / 2, seconds * part, 64, seed))
            step()
            return recording

        steady = run(0.5, seed=1)
        with reloading(base_path, every_seconds):
            reloaded = run(1, seed=2)
        steady.extend(run(0.5, seed=3))
    return capacity, steady, reloaded


def table_of(steady: Recording, reloaded: Recording, loads: int) -> Table:
    """Both recordings, a line each."""
    table = Table(title=f"{loads} reloads", box=SIMPLE)
    for header in ("", "calls", "errors", "p50 ms", "p99 ms", "p99.9 ms", "late p99 ms"):
        table.add_column(header, justify="right")
    for name, recording in (("steady", steady), ("reloading", reloaded)):
        latencies = [percentile_ms(recording.latencies, part) for part in (50, 99, 99.9)]
        late = percentile_ms(recording.lateness, 99)
        table.add_row(
            name,
            str(len(recording.calls)),
            str(recording.errors),
            *(f"{value:.2f}" for value in [*latencies, late]),
        )
    return table


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
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        base_path = Path(folder, "ranker")
        module = Ranker(args.megabytes)
        tf.saved_model.save(module, str(base_path / "1"), signatures=module.score)
        with ServerProcess("ranker", base_path, args.server_flag) as server:
            capacity, steady, reloaded = measure(
                base_path, server, args.seconds, args.every, console
            )
            loads = len(re.findall(r"version \d+: serving", server.log())) - 1
    console.print(table_of(steady, reloaded, loads))
    ratio = percentile_ms(reloaded.latencies, 99) / percentile_ms(steady.latencies, 99)
    console.print(f"p99 while reloading / steady: {ratio:.2f} (at {capacity / 2:.0f} requests/s)")
    if not (kept_up(steady) and kept_up(reloaded)):
        console.print("The generator was late: the figures are partly its own.")
    if steady.errors + reloaded.errors or loads == 0:
        console.print(f"[red]failed: {steady.first_error or reloaded.first_error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
