"""The encoder beside its peers, and packed beside padded; texts of 5 to 60 words.

python -m tests.zoo.text.bench [--threads N] [--peers]     make bench-text

First the server, whose CPU per text counts; then the graph in this process, beside the peers in
theirs. `--peers` needs `make setup-text`.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import tensorflow as tf
from colcast.client import TextClient
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.recording import Recording
from colcast.loadtest.variants import P50, Variant, measure_variants, one_by_one, other
from colcast.server import ServerProcess
from colcast.zoo.text import encoder, packed

from .peer_environment import mixed_lengths, peers, published_model, written

BATCH = 32
TEXTS = 512
ALONE = 200
ROUNDS = 3
CPU_PER_TEXT, TEXTS_PER_SECOND = "CPU ms per text", "texts per second"
COLUMNS = (
    other(CPU_PER_TEXT, over=min),
    other(TEXTS_PER_SECOND, ",.0f", over=max),
    P50,
)


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


def encoding(
    title: str,
    encode: Callable[[list[str]], object],
    batches: Sequence[list[str]],
    pid: int | None = None,
) -> Variant:
    """All batches in a turn; the first, which compiles, is not counted."""

    def turn(_: int) -> Recording:
        waiting = iter(batches)
        meter = ProcessMeter(pid or os.getpid())
        recording = one_by_one(
            lambda: encode(next(waiting)), lambda done: done < len(batches), meter
        )
        texts = sum(map(len, batches))
        recording.others[CPU_PER_TEXT] = 1000 * recording.server_cpu_seconds / texts
        recording.others[TEXTS_PER_SECOND] = texts / recording.wall_seconds
        return recording

    return Variant(title, turn)


def batches_of(texts: list[str]) -> list[list[str]]:
    return [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]


def groups(texts: list[str], threads: int) -> Iterator[tuple[str, list[Variant]]]:
    """The server, the graph alone, and the graph on padded batches."""
    one_text = [[text] for text in texts[:ALONE]]
    for precision in encoder.PRECISIONS:
        base_path = encoder.ensure(precision=precision)
        flags = [f"--num_workers={threads}", "--item_state_bytes=0"]  # nothing is found
        with (
            ServerProcess("encoder", base_path, flags) as server,
            TextClient(server.target, "encoder") as client,
        ):
            yield (
                f"server, {precision}",
                [
                    encoding("all texts in one call", client.encode, [texts], server.pid),
                    encoding("one text", client.encode, one_text, server.pid),
                ],
            )
    by_length = batches_of(sorted(texts, key=len))
    for precision in encoder.PRECISIONS:
        run = session_run(encoder.ensure(precision=precision) / "1", threads)
        variants = [
            encoding("as they come", run, batches_of(texts)),
            encoding("by length", run, by_length),
            encoding("one text", run, one_text),
        ]
        yield f"graph, {precision}", variants
    with tempfile.TemporaryDirectory() as folder:
        module = PaddedEncoder(encoder.weights.load(encoder.WORK_DIR))
        tf.saved_model.save(module, folder, signatures={"encode": module.encode})
        run = session_run(Path(folder), threads)
    yield "graph, float32, padded", [encoding("as they come", run, batches_of(texts))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", action="store_true")
    args = parser.parse_args()
    texts = mixed_lengths(TEXTS)
    print(f"{args.threads} of {os.cpu_count()} threads, {TEXTS} texts, batches of {BATCH}")
    measure_variants(groups(texts, args.threads), ROUNDS, COLUMNS)
    if args.peers:
        with tempfile.TemporaryDirectory() as folder:
            file = written(texts, Path(folder) / "texts.json")
            printed = peers("speed", published_model(), file, args.threads).splitlines()
        for line in (json.loads(text) for text in printed if text.startswith("{")):
            if "cpu" in line:
                figures = f"{1e3 / line['cpu']:.2f} ms CPU per text, {line['wall']:.0f} texts/s"
            else:
                figures = f"{line['cpu_p50_ms']:.2f} ms CPU per text, {line['p50_ms']:.2f} ms p50"
            print(f"| {line['who']} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
