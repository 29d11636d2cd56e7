"""The encoder beside its peers, and packed beside padded; texts of 5 to 60 words.

python -m tests.zoo.text.bench [--threads N] [--peers]     make bench-text

First the server, whose CPU per text counts; then the graph in this process, beside the peers in
theirs. Everything runs in turn. `--peers` needs `make setup-text`.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf
from colcast.client import TextClient
from colcast.loadtest.process import ProcessMeter
from colcast.server import ServerProcess
from colcast.zoo.text import encoder, packed

from .peer_environment import mixed_lengths, peers, published_model, written

BATCH = 32
TEXTS = 512
ALONE = 200
ROUNDS = 3


class PaddedEncoder(encoder.Encoder):
    """The same network with every text padded to the longest, without even a mask."""

    def _read(self, texts, most):
        found = super()._read(texts, most)
        count, longest = tf.size(found.sizes), tf.reduce_max(found.sizes)
        where = packed.segments(tf.fill([count], longest))
        rows = tf.gather(found.tokens, tf.range(count * longest) % tf.size(found.tokens))
        return found._replace(tokens=where.padded(rows), where=where)


def session_run(version: Path, threads: int) -> Callable[[list[str]], object]:
    """Runs `encode` as the server does: a session, operators one after the other."""
    import tensorflow_text  # noqa: F401  the ops of the graph

    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=-1
    )
    session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
    with session.graph.as_default():
        meta = tf.compat.v1.saved_model.load(session, ["serve"], str(version))
    signature = meta.signature_def["encode"]
    feeds = [signature.inputs[name].name for name in ("texts", "max_seq_len")]
    run = session.make_callable(signature.outputs["embeddings"].name, feeds)
    return lambda texts: run(texts, 256)


def throughput(name: str, encode, batches: list[list[str]], cpu_clock=time.process_time) -> dict:
    """The best of some rounds; the first one, which compiles, is not counted."""
    best = {"who": name, "cpu": 0.0, "wall": 0.0}
    texts = sum(map(len, batches))
    for number in range(ROUNDS + 1):
        cpu, wall = cpu_clock(), time.perf_counter()
        for batch in batches:
            encode(batch)
        cpu, wall = cpu_clock() - cpu, time.perf_counter() - wall
        if number:
            best["cpu"] = max(best["cpu"], texts / cpu)
            best["wall"] = max(best["wall"], texts / wall)
    return best


def alone(name: str, encode, texts: list[str], cpu_clock=time.process_time) -> dict:
    """The medians of one text at a time."""
    times, cpus = [], []
    for number in range(2):
        for text in texts[:ALONE]:
            wall, cpu = time.perf_counter(), cpu_clock()
            encode([text])
            if number:
                times.append(time.perf_counter() - wall)
                cpus.append(cpu_clock() - cpu)
    medians = (1e3 * float(np.median(each)) for each in (times, cpus))
    return {"who": name, **dict(zip(("p50_ms", "cpu_p50_ms"), medians, strict=True))}


def batches_of(texts: list[str]) -> list[list[str]]:
    return [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]


def served(texts: list[str], threads: int, precision: str) -> list[dict]:
    """Over gRPC: all texts in one call of the client, and one text; CPU is the server's."""
    base_path = encoder.ensure(precision=precision)
    flags = [
        f"--num_workers={threads}",
        "--item_state_bytes=0",
    ]  # no answer is found instead of made
    who = f"server, {precision}"
    with (
        ServerProcess("encoder", base_path, flags) as server,
        TextClient(server.target, "encoder") as client,
    ):
        cpu_clock = ProcessMeter(server.pid).cpu_seconds
        return [
            throughput(f"{who}, all texts in one call", client.encode, [texts], cpu_clock),
            alone(f"{who}, one text", client.encode, texts, cpu_clock),
        ]


def in_process(texts: list[str], threads: int, precision: str) -> list[dict]:
    """The graph alone, as the peers are measured: batches as they come and by length; one text."""
    run = session_run(encoder.ensure(precision=precision) / "1", threads)
    who = f"graph, {precision}"
    return [
        throughput(f"{who}, as they come", run, batches_of(texts)),
        throughput(f"{who}, by length", run, batches_of(sorted(texts, key=len))),
        alone(f"{who}, one text", run, texts),
    ]


def padded(texts: list[str], threads: int) -> dict:
    """The same network on padded batches."""
    with tempfile.TemporaryDirectory() as folder:
        module = PaddedEncoder(encoder.weights.load(encoder.WORK_DIR))
        tf.saved_model.save(module, folder, signatures={"encode": module.encode})
        run = session_run(Path(folder), threads)
    return throughput("graph, float32, padded, as they come", run, batches_of(texts))


def show(lines: list[dict]) -> None:
    """A line of text each."""
    for line in lines:
        if "cpu" in line:
            figures = f"{1e3 / line['cpu']:8.2f} ms CPU per text {line['wall']:8.0f} texts/s"
        else:
            figures = f"{line['cpu_p50_ms']:8.2f} ms CPU per text {line['p50_ms']:8.2f} ms p50"
        print(f"{line['who']:50} {figures}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", action="store_true")
    args = parser.parse_args()
    texts = mixed_lengths(TEXTS)
    print(f"{args.threads} of {os.cpu_count()} threads, {TEXTS} texts, batches of {BATCH}")
    for measure in (served, in_process):
        for precision in encoder.PRECISIONS:
            show(measure(texts, args.threads, precision))
    show([padded(texts, args.threads)])
    if args.peers:
        with tempfile.TemporaryDirectory() as folder:
            file = written(texts, Path(folder) / "texts.json")
            printed = peers("speed", published_model(), file, args.threads)
        show([json.loads(line) for line in printed.splitlines() if line.startswith("{")])


if __name__ == "__main__":
    main()
